# The calls of ruby-fog-rackspace for Cloud Queues, as Debian ships it: queues.rb SERVER
require 'fog/rackspace'

def expect(what, is, wanted)
  abort "#{what}: #{is.inspect}, not #{wanted.inspect}" unless is == wanted
  puts "#{what}: #{is.inspect}"
end

def raised
  yield
  nil
rescue StandardError => e
  e.class.name
end

def connect(server, client_id)
  Fog::Rackspace::Queues.new(
    rackspace_username: 'ann', rackspace_api_key: 'anything', rackspace_region: :ord,
    rackspace_auth_url: server + '/identity/v2.0', rackspace_queues_client_id: client_id)
end

server = ARGV[0]
fog = connect(server, '3381af92-2b9e-11e3-b191-71861300734c')

# Queues.
expect('no queues', fog.queues.all.map(&:name), [])
queue = fog.queues.create(name: 'jobs')
fog.queues.create(name: 'other')
expect('queues', fog.queues.all.map(&:name), %w[jobs other])
expect('queue', fog.queues.get('jobs').name, 'jobs')
expect('no queue', fog.queues.get('none'), nil)
expect('list_queues', fog.list_queues(limit: 1, detailed: true).body['queues'].size, 1)
expect('get_queue', fog.get_queue('jobs').status, 204)
# fog takes 201 only, and the API says 204 for a queue that is there.
expect('create_queue again', raised { fog.create_queue('jobs') }.nil?, false)
expect('free', queue.stats['free'], 0)

# Messages.
expect('no messages', queue.messages.all.to_a, [])
posted = (1..3).map { |n| queue.messages.create(body: { 'job' => n }, ttl: 300) }
expect('listed', queue.messages.all.map { |m| m.body['job'] }, [1, 2, 3])
expect('got', queue.messages.get(posted[1].id).body, { 'job' => 2 })
expect('no message', queue.messages.get('0' * 24), nil)
expect('deleted', posted[0].destroy, true)
queue.messages.limit = 1
expect('page', queue.messages.all.map { |m| m.body['job'] }, [2])
queue.messages.marker = fog.list_messages(fog.client_id, 'jobs', limit: '1', echo: 'true')
                           .body['links'][0]['href'][/marker=(\d+)/, 1]
expect('next page', queue.messages.all.map { |m| m.body['job'] }, [3])
expect('free', queue.stats['free'], 2)

# Claims.
claim = queue.claims.create(ttl: 120, grace: 60, limit: 2)
expect('claimed', claim.messages.map { |m| m.body['job'] }, [2, 3])
expect('nothing to claim', queue.claims.create(ttl: 120, grace: 60), false)
expect('a held message', raised { fog.delete_message('jobs', claim.messages[0].id) }.nil?, false)
expect('shown', queue.claims.get(claim.id).messages.size, 2)
claim.ttl = 300
expect('renewed', claim.save, true)
expect('ttl', fog.get_claim('jobs', claim.id).body['ttl'], 300)
expect('finished', claim.messages[0].destroy, true)
late = claim.messages[1]
expect('released', claim.destroy, true)
expect('a late worker', raised { late.destroy }.nil?, false)
expect('a claim that is over', queue.claims.get(claim.id), nil)
expect('dequeue', queue.dequeue(120, 60) { |m| expect('job', m.body['job'], 3) }, true)
expect('dequeue nothing', queue.dequeue(120, 60), false)
expect('enqueue', queue.enqueue({ 'job' => 4 }, 300).id.size, 24)

# Another client sees what this one hides from itself.
other = connect(server, '3381af92-2b9e-11e3-b191-71861300734d')
expect('another client', other.list_messages(other.client_id, 'jobs').body['messages'].size, 1)

expect('queue deleted', queue.destroy, true)
expect('no queue any more', fog.queues.get('jobs'), nil)
