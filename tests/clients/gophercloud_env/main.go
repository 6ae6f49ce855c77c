// The variables of `claimd run` are all that gophercloud needs.
package main

import (
	"fmt"
	"os"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/openstack"
	"github.com/gophercloud/gophercloud/openstack/messaging/v2/messages"
	"github.com/gophercloud/gophercloud/openstack/messaging/v2/queues"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	options, err := openstack.AuthOptionsFromEnv()
	must(err)
	provider, err := openstack.AuthenticatedClient(options)
	must(err)
	client, err := openstack.NewMessagingV2(provider, os.Getenv("OS_MESSAGE_CLIENT_ID"),
		gophercloud.EndpointOpts{Region: os.Getenv("OS_REGION_NAME")})
	must(err)
	must(queues.Create(client, queues.CreateOpts{QueueName: "jobs",
		DefaultMessageTTL: 3600}).ExtractErr())
	_, err = messages.Create(client, "jobs", messages.BatchCreateOpts{
		{TTL: 300, Body: map[string]interface{}{"job": 1}}}).Extract()
	must(err)
	fmt.Println("ok")
}
