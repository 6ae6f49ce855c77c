#include "http/delivery.h"

#include <linux/tcp.h>
#include <sys/socket.h>

uint64_t
delivery_handed(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        len < offsetof(struct tcp_info, tcpi_bytes_retrans) +
                  sizeof(info.tcpi_bytes_retrans))
        return 0;
    return 1 + info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes;
}

/* A claim to be given back by the executor. */
struct returning {
    struct executor_job job;
    const struct worker_shared *shared;
    struct store_queue queue;
    struct bytes claim_id;
    bool unseen;
    char text[];
};

static void
give_back(const struct worker_shared *shared, const struct store_queue *queue,
          struct bytes claim_id, bool unseen)
{
    const struct server_config *config = shared->config;
    enum status st;

    do
        st = store_claim_release(config->store, STORE_AT(clock_now_ms(config->clock)),
                                 queue, claim_id,
                                 unseen ? STORE_NOT_SEEN : STORE_NOT_SENT);
    while (st == ST_AGAIN);
    /* Should it fail, the claim ends when its time is over. */
}

static void
give_back_remotely(struct executor_job *job)
{
    struct returning *r = container_of(job, struct returning, job);

    give_back(r->shared, &r->queue, r->claim_id, r->unseen);
    mem_free(r->shared->config->mem, r);
}

void
delivery_give_back(const struct worker_shared *shared, struct exchange *ex, bool unseen)
{
    const struct server_config *config = shared->config;
    const struct store_queue *queue = &ex->response.claim_queue;
    struct bytes claim_id = ex->response.claim_id;
    struct returning *r;
    char *at;

    if (!config->store->blocks) {
        give_back(shared, queue, claim_id, unseen);
        return;
    }
    r = mem_alloc(config->mem,
                  sizeof(*r) + queue->project.len + queue->name.len + claim_id.len);
    if (r == NULL)
        return;
    at = r->text;
    *r = (struct returning){.job.run = give_back_remotely,
                            .shared = shared,
                            .queue = *queue,
                            .unseen = unseen};
    r->queue.project = bytes_lay(&at, queue->project);
    r->queue.name = bytes_lay(&at, queue->name);
    r->claim_id = bytes_lay(&at, claim_id);
    if (executor_submit(config->executor, &r->job) != ST_OK)
        mem_free(config->mem, r);
}
