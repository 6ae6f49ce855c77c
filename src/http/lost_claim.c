#include "http/lost_claim.h"

#include <linux/tcp.h>
#include <sys/socket.h>

uint64_t
socket_sent_bytes(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        len < offsetof(struct tcp_info, tcpi_bytes_retrans) +
                  sizeof(info.tcpi_bytes_retrans))
        return 0;
    return 1 + info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes;
}

/* A claim to release, by the executor if the store blocks. */
struct claim_release {
    struct executor_job job;
    const struct server_config *config;
    struct store_queue queue;
    struct bytes claim_id;
    bool unseen; /* the client has received no byte of the response */
    char text[];
};

static void
release_claim(const struct claim_release *r)
{
    const struct server_config *config = r->config;
    enum status st;

    do
        st = store_claim_release(config->store, STORE_AT(clock_now_ms(config->clock)),
                                 &r->queue, r->claim_id,
                                 r->unseen ? STORE_NOT_SEEN : STORE_NOT_SENT);
    while (st == ST_AGAIN);
    /* If the release fails, the claim expires. */
}

static void
run_release(struct executor_job *job)
{
    struct claim_release *r = container_of(job, struct claim_release, job);

    release_claim(r);
    mem_free(r->config->mem, r);
}

void
lost_claim_release(const struct worker *w, const struct exchange *ex, bool unseen)
{
    const struct server_config *config = w->shared->config;
    const struct claim_release here = {.config = config,
                                       .queue = ex->response.claim_queue,
                                       .claim_id = ex->response.claim_id,
                                       .unseen = unseen};
    const struct store_queue *queue = &here.queue;
    struct claim_release *r;
    char *at;

    if (!config->store->blocks) {
        release_claim(&here);
        return;
    }
    r = mem_alloc(config->mem,
                  sizeof(*r) + queue->project.len + queue->name.len + here.claim_id.len);
    if (r == NULL)
        return;
    *r = here;
    r->job.run = run_release;
    at = r->text;
    r->queue.project = bytes_copy_to(&at, queue->project);
    r->queue.name = bytes_copy_to(&at, queue->name);
    r->claim_id = bytes_copy_to(&at, here.claim_id);
    if (executor_submit(config->executor, &r->job) != ST_OK)
        mem_free(config->mem, r);
}
