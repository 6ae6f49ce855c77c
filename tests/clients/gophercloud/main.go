// The messaging/v2 packages of gophercloud as Debian ships it, against a claimd with the
// identity stub: queues, messages and the life of a claim.
//
//	main URL-OF-IDENTITY PROJECT
package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/openstack"
	"github.com/gophercloud/gophercloud/openstack/messaging/v2/claims"
	"github.com/gophercloud/gophercloud/openstack/messaging/v2/messages"
	"github.com/gophercloud/gophercloud/openstack/messaging/v2/queues"
	"github.com/gophercloud/gophercloud/pagination"
)

const (
	producer = "3381af92-2b9e-11e3-b191-71861300734c"
	worker   = "8ec0a5ba-65ad-43e6-8af8-ac4e0e8c6b1e"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func same(what string, got, want interface{}) {
	if !reflect.DeepEqual(got, want) {
		panic(fmt.Sprintf("%s: %v instead of %v", what, got, want))
	}
}

func connect(url, project, client string) *gophercloud.ServiceClient {
	provider, err := openstack.AuthenticatedClient(gophercloud.AuthOptions{
		IdentityEndpoint: url,
		Username:         "ann",
		Password:         "x",
		DomainID:         "default",
		TenantName:       project,
	})
	must(err)
	service, err := openstack.NewMessagingV2(provider, client,
		gophercloud.EndpointOpts{Region: "RegionOne"})
	must(err)
	return service
}

func job(n int) map[string]interface{} {
	return map[string]interface{}{"job": float64(n)}
}

func post(c *gophercloud.ServiceClient, count int) []string {
	var batch messages.BatchCreateOpts
	for n := 0; n < count; n++ {
		batch = append(batch, messages.CreateOpts{TTL: 300, Body: job(n)})
	}
	posted, err := messages.Create(c, "jobs", batch).Extract()
	must(err)
	var ids []string
	for _, href := range posted.Resources {
		ids = append(ids, href[strings.LastIndex(href, "/")+1:])
	}
	return ids
}

func checkQueues(c *gophercloud.ServiceClient) {
	for _, name := range []string{"alpha", "beta", "jobs"} {
		must(queues.Create(c, queues.CreateOpts{QueueName: name, DefaultMessageTTL: 120,
			Extra: map[string]interface{}{"of": name}}).ExtractErr())
	}
	var names []string
	must(queues.List(c, queues.ListOpts{Limit: 2, Detailed: true}).EachPage(
		func(page pagination.Page) (bool, error) {
			list, err := queues.ExtractQueues(page)
			for _, q := range list {
				names = append(names, q.Name)
			}
			return true, err
		}))
	same("names", names, []string{"alpha", "beta", "jobs"})
	_, err := queues.Update(c, "alpha", queues.BatchUpdateOpts{
		{Op: queues.ReplaceOp, Path: "/metadata/of", Value: "another"}}).Extract()
	must(err)
	details, err := queues.Get(c, "alpha").Extract()
	must(err)
	same("metadata", details.Extra["of"], "another")
	same("ttl", details.DefaultMessageTTL, 120)
	must(queues.Delete(c, "alpha").ExtractErr())
}

func checkMessages(c *gophercloud.ServiceClient) {
	ids := post(c, 5)
	one, err := messages.Get(c, "jobs", ids[1]).Extract()
	must(err)
	same("body", one.Body, job(1))
	some, err := messages.GetMessages(c, "jobs",
		messages.GetMessagesOpts{IDs: ids[:2]}).Extract()
	must(err)
	same("messages by id", len(some), 2)
	var seen []string
	must(messages.List(c, "jobs", messages.ListOpts{Limit: 2, Echo: true}).EachPage(
		func(page pagination.Page) (bool, error) {
			list, err := messages.ExtractMessages(page)
			for _, m := range list {
				seen = append(seen, m.ID)
			}
			return true, err
		}))
	same("listed", seen, ids)
	popped, err := messages.PopMessages(c, "jobs", messages.PopMessagesOpts{Pop: 1}).Extract()
	must(err)
	same("popped", popped[0].ID, ids[0])
	must(messages.DeleteMessages(c, "jobs",
		messages.DeleteMessagesOpts{IDs: ids[1:]}).ExtractErr())
}

func checkClaims(p, w *gophercloud.ServiceClient) {
	post(p, 2)
	created := claims.Create(w, "jobs", claims.CreateOpts{TTL: 60, Grace: 60, Limit: 10})
	held, err := created.Extract()
	must(err)
	same("claimed", len(held), 2)
	none, err := claims.Create(w, "jobs", claims.CreateOpts{TTL: 60, Grace: 60}).Extract()
	must(err)
	same("claimed when nothing is free", len(none), 0)
	location := created.Header.Get("Location")
	id := location[strings.LastIndex(location, "/")+1:]
	must(claims.Update(w, "jobs", id, claims.UpdateOpts{TTL: 300, Grace: 60}).ExtractErr())
	claim, err := claims.Get(w, "jobs", id).Extract()
	must(err)
	same("ttl", claim.TTL, 300)
	done := held[0].Href[strings.LastIndex(held[0].Href, "/")+1:]
	done = done[:strings.Index(done, "?")]
	must(messages.Delete(w, "jobs", done, messages.DeleteOpts{ClaimID: id}).ExtractErr())
	must(claims.Delete(w, "jobs", id).ExtractErr())
	stats, err := queues.GetStats(w, "jobs").Extract()
	must(err)
	same("free", stats.Free, 1)
	err = messages.Delete(w, "jobs", held[1].Href, messages.DeleteOpts{}).ExtractErr()
	if err == nil {
		panic("a message with an impossible id was deleted")
	}
}

func main() {
	p, w := connect(os.Args[1], os.Args[2], producer), connect(os.Args[1], os.Args[2], worker)
	checkQueues(p)
	checkMessages(p)
	checkClaims(p, w)
	fmt.Println("ok")
}
