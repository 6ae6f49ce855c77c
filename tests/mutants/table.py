"""The deliberate bugs that the tests have to find, and which test finds each.

A row of MUTANTS is

    (name, what it breaks, who finds it, [(file below src, text, text with the bug)])

where SIMULATION stands for the seeds of tests/sim, and a text for a test:
"FOLDER/PROGRAM: CASE" of one written in C, "FOLDER/SCRIPT: CLASS.METHOD" of one in Python.
MUTANT(NAME) is true in the text with the bug while that bug is awake. A row whose text is
not found exactly once in its file is an error: then the source has changed, and the row
must follow. mutate.py builds them in, kill.py and simulation.c wake them one at a time.
"""

SIMULATION = None

CRASH = "model/crash_test: after_any_crash_the_store_is_what_its_answers_said"

MUTANTS = [
    ("RELEASE_FORGETS_ORDER",
     "a claim goes on behind the newest claim; what was given back before that waits",
     SIMULATION,
     [("engine/claim_ops.c",
       "    uint64_t seq = 0;\n\n    t->claim = NULL;",
       "    uint64_t seq = 0;\n\n"
       "    if (MUTANT(RELEASE_FORGETS_ORDER)) {\n"
       "        const struct claim *newest = seqmap_last(&q->backlog->claims, &seq);\n"
       "        seq = 0;\n"
       "        if (newest != NULL && newest->count > 0)\n"
       "            seq = newest->seqs[newest->count - 1];\n"
       "    }\n"
       "    t->claim = NULL;"),
      ("engine/claim_ops.c",
       "        claim_take(v->shard, c, m, terms, v->now_ms);",
       "        if (MUTANT(RELEASE_FORGETS_ORDER) && m == NULL) {\n"
       "            seq = 0;\n"
       "            m = seqmap_next_ready(&q->backlog->messages, &seq);\n"
       "        }\n"
       "        if (m == NULL)\n"
       "            break; /* CARRY_SKIPS_A_BIT: it does not find them all */\n"
       "        claim_take(v->shard, c, m, terms, v->now_ms);")]),
    ("CARRY_SKIPS_A_BIT",
     "the search for the next message skips a node when it leaves another",
     SIMULATION,
     [("ds/seqmap.c",
       "bits & (~(uint64_t)1 << index);",
       "bits & (~(uint64_t)(MUTANT(CARRY_SKIPS_A_BIT) && height > 1 ? 3 : 1) << index);")]),
    ("HELD_HANDED_OUT",
     "a message claimed for the second time stays claimable",
     SIMULATION,
     [("engine/backlog.c",
       "    seqmap_set_ready(&b->messages, m->seq, false);",
       "    seqmap_set_ready(&b->messages, m->seq,\n"
       "                     MUTANT(HELD_HANDED_OUT) && m->claim_count > 0);")]),
    ("DELAY_IGNORED",
     "a delayed message can be claimed at once",
     SIMULATION,
     [("engine/message_ops.c",
       "m->delayed = delay_s > 0;",
       "m->delayed = delay_s > 0 && !MUTANT(DELAY_IGNORED);")]),
    ("MESSAGE_OFF_BY_ONE",
     "a message lives a millisecond too long",
     SIMULATION,
     [("engine/message_ops.c",
       "m->expires_ms = now_ms + ttl_s * 1000;",
       "m->expires_ms = now_ms + ttl_s * 1000 + MUTANT(MESSAGE_OFF_BY_ONE);")]),
    ("CLAIM_OFF_BY_ONE",
     "a claim ends a millisecond too late",
     SIMULATION,
     [("engine/claim.c",
       "now_ms + terms->ttl_s * 1000);\n}\n\nsize_t\nclaim_nodes",
       "now_ms + terms->ttl_s * 1000 + MUTANT(CLAIM_OFF_BY_ONE));\n}\n\n"
       "size_t\nclaim_nodes")]),
    ("NEEDS_HOUSEKEEPING",
     "a claim sees what housekeeping has come to, not what is due",
     SIMULATION,
     [("engine/dead_letter.c",
       "visit_enter(&dl->from, s, outer, where, SETTLE_ALL);",
       "visit_enter(&dl->from, s, outer, where,\n"
       "             MUTANT(NEEDS_HOUSEKEEPING) ? SETTLE_CLAIMS : SETTLE_ALL);")]),
    ("DELETE_WITHOUT_CHECK",
     "anybody can delete a claimed message",
     SIMULATION,
     [("engine/message_ops.c",
       "    if (!bytes_present(claim_id))\n        return m->claim",
       "    if (MUTANT(DELETE_WITHOUT_CHECK))\n"
       "        return ST_OK;\n"
       "    if (!bytes_present(claim_id))\n        return m->claim")]),
    ("DEAD_CLAIM_FINISHES",
     "a worker whose claim is over still deletes the message",
     SIMULATION,
     [("engine/message_ops.c",
       "        return ST_NOT_CLAIMED;\n    return m->claim == c",
       "        return MUTANT(DEAD_CLAIM_FINISHES) ? ST_OK : ST_NOT_CLAIMED;\n"
       "    return m->claim == c")]),
    ("GRACE_IGNORED",
     "a claimed message lives to the end of the claim only",
     SIMULATION,
     [("engine/claim.c",
       "terms->ttl_s + terms->grace_s;",
       "terms->ttl_s + (MUTANT(GRACE_IGNORED) ? 0 : terms->grace_s);")]),
    ("CLAIM_SHORTENS_LIFE",
     "a claim sets a message's life also when it was longer",
     SIMULATION,
     [("engine/claim.c",
       "    if (until_ms <= m->expires_ms)\n",
       "    if (until_ms <= m->expires_ms && !MUTANT(CLAIM_SHORTENS_LIFE))\n")]),
    ("RENEW_DOES_NOT_RESTART",
     "a renewed claim counts from when it was made",
     SIMULATION,
     [("engine/claim_ops.c",
       "    claim_start(v->shard, c, terms, v->now_ms);\n    for",
       "    claim_start(v->shard, c, terms,\n"
       "                MUTANT(RENEW_DOES_NOT_RESTART) ? c->started_ms : v->now_ms);\n"
       "    for")]),
    ("RELEASE_DOES_NOTHING",
     "a released claim can be queried and holds its messages until it expires",
     SIMULATION,
     [("engine/claim_ops.c",
       "    if (c != NULL && st == ST_OK) {\n",
       "    if (c != NULL && st == ST_OK && !MUTANT(RELEASE_DOES_NOTHING)) {\n")]),
    ("CLAIM_OUTLIVES_ITS_MESSAGES",
     "a claim whose messages are gone can still be queried and renewed",
     SIMULATION,
     [("engine/claim.c",
       "    if (--c->held == 0)\n",
       "    if (--c->held == 0 && !MUTANT(CLAIM_OUTLIVES_ITS_MESSAGES))\n")]),
    ("RELEASE_FORGETS_COUNT",
     "a message given back counts as never claimed",
     SIMULATION,
     [("engine/backlog.c",
       "    m->claim = NULL;\n    uncount_claimed(b);\n    seqmap_set_ready",
       "    m->claim = NULL;\n"
       "    if (MUTANT(RELEASE_FORGETS_COUNT))\n"
       "        m->claim_count = 0;\n"
       "    uncount_claimed(b);\n    seqmap_set_ready")]),
    ("DEAD_LETTER_LOST",
     "a dead letter that cannot be moved for want of memory is gone",
     SIMULATION,
     [("engine/dead_letter.c",
       "        give_up(dl, &move);\n        return st;",
       "        give_up(dl, &move);\n"
       "        for (size_t i = 0; MUTANT(DEAD_LETTER_LOST) && i < move.count; i++) {\n"
       "            settle_remove(dl->from.shard, move.messages[i]);\n"
       "            message_unpin(dl->from.engine->core.mem, move.messages[i]);\n"
       "        }\n"
       "        return st;")]),
    ("LETTER_HANDED_OUT",
     "a message is handed out once more than its queue allows",
     SIMULATION,
     [("engine/dead_letter.c",
       "return (int64_t)m->claim_count >=",
       "return (int64_t)m->claim_count - MUTANT(LETTER_HANDED_OUT) >=")]),
    ("LETTER_NEW_ID",
     "a dead letter that moves on gets the id of its last place",
     SIMULATION,
     [("engine/dead_letter.c",
       "    if (m->foreign != NULL)\n        return;\n    m->foreign",
       "    if (m->foreign != NULL) {\n"
       "        if (MUTANT(LETTER_NEW_ID))\n"
       "            m->foreign->id = (struct ident){source->tag, m->seq};\n"
       "        return;\n"
       "    }\n"
       "    m->foreign")]),
    ("IDS_REUSED",
     "a queue that is made again gives out the ids of the old one",
     SIMULATION,
     [("engine/core.c",
       "    return ident_tag(core->tag_start,",
       "    if (MUTANT(IDS_REUSED))\n"
       "        return ident_tag(core->tag_start, 0);\n"
       "    return ident_tag(core->tag_start,")]),
    ("PAGE_REPEATS",
     "a page begins with the message its marker stands for",
     SIMULATION,
     [("engine/message_ops.c",
       "            seq = marker_seq(v.queue, filter->marker);",
       "            seq = marker_seq(v.queue, filter->marker) -\n"
       "                  (MUTANT(PAGE_REPEATS) &&\n"
       "                   marker_seq(v.queue, filter->marker) > 0);")]),
    ("BATCH_IN_PART",
     "a post that runs out of memory leaves its first messages behind",
     SIMULATION,
     [("engine/message_ops.c",
       "        if (m == NULL) {\n            message_unpin_all",
       "        if (m == NULL) {\n"
       "            if (MUTANT(BATCH_IN_PART) && i > 0)\n"
       "                return ST_OK;\n"
       "            message_unpin_all"),
      ("engine/message_ops.c",
       "        const struct store_draft *draft = &post->drafts[i];\n",
       "        if (MUTANT(BATCH_IN_PART) && list_empty(messages))\n"
       "            break;\n"
       "        const struct store_draft *draft = &post->drafts[i];\n"),
      ("engine/message_ops.c",
       "        commit_post(&v, post, made, &messages);\n",
       "        commit_post(&v, post, made, &messages);\n"
       "        if (MUTANT(BATCH_IN_PART) && v.queue->last_seq != id.low + post->count) {\n"
       "            struct store_post rest = *post;\n"
       "            size_t there = (size_t)(v.queue->last_seq - id.low);\n"
       "            rest.drafts += there;\n"
       "            rest.count -= there;\n"
       "            directory_give(&v.queue->entry, rest.count, body_bytes(&rest));\n"
       "            st = ST_NO_MEMORY;\n"
       "        }\n")]),
    ("PURGE_KEEPS_CLAIMED",
     "a purge leaves what claims hold",
     SIMULATION,
     [("engine/queue_ops.c",
       "            return ST_NO_MEMORY;\n        st = visit_reserve_messages(v, STORE_CHANGE_PURGE, 0, 0);",
       "            return ST_NO_MEMORY;\n"
       "        if (MUTANT(PURGE_KEEPS_CLAIMED) && v->queue->backlog->claimed > 0) {\n"
       "            struct message *m;\n"
       "            uint64_t seq = 0;\n"
       "            while ((m = backlog_next_ready(v->queue->backlog, &seq)) != NULL) {\n"
       "                settle_remove(v->shard, m);\n"
       "                message_unpin(v->engine->core.mem, m);\n"
       "            }\n"
       "            backlog_free(v->engine->core.mem, *fresh);\n"
       "            *fresh = NULL;\n"
       "            return ST_OK;\n"
       "        }\n"
       "        st = visit_reserve_messages(v, STORE_CHANGE_PURGE, 0, 0);")]),
    ("BUDGET_IGNORED",
     "messages are taken in although the memory budget is used up",
     SIMULATION,
     [("engine/message_ops.c",
       "    if (!mem_admits(e->core.mem, post_bytes(post)))",
       "    if (!mem_admits(e->core.mem, post_bytes(post)) && !MUTANT(BUDGET_IGNORED))")]),
    ("POST_CALLS_NOBODY",
     "a post does not call who waits",
     SIMULATION,
     [("engine/message_ops.c",
       "    queue_stir(v->queue);\n    if (!observed",
       "    if (!MUTANT(POST_CALLS_NOBODY))\n"
       "        queue_stir(v->queue);\n"
       "    if (!observed")]),
    ("DELAY_CALLS_NOBODY",
     "the end of a delay does not call who waits",
     SIMULATION,
     [("engine/settle.c",
       "    if (q != NULL)\n        queue_stir(q);",
       "    if (q != NULL && !MUTANT(DELAY_CALLS_NOBODY))\n        queue_stir(q);")]),
    ("CLAIM_OVER_CALLS_NOBODY",
     "the end of a claim's time does not call who waits",
     SIMULATION,
     [("engine/claim.c",
       "    if (c->held > 0 && c->backlog->queue != NULL)\n        queue_stir",
       "    if (c->held > 0 && c->backlog->queue != NULL &&\n"
       "        !(MUTANT(CLAIM_OVER_CALLS_NOBODY) && c->due.due_ms <= sh->now_ms) &&\n"
       "        !(MUTANT(RELEASE_CALLS_NOBODY) && c->due.due_ms > sh->now_ms))\n"
       "        queue_stir")]),
    ("RELEASE_CALLS_NOBODY",
     "a released claim does not call who waits",
     SIMULATION,
     []), # with the row before
    ("LETTER_CALLS_NOBODY",
     "a dead letter that is moved does not call who waits where it goes",
     SIMULATION,
     [("engine/dead_letter.c",
       "    queue_stir(move.target);\n",
       "    if (!MUTANT(LETTER_CALLS_NOBODY))\n        queue_stir(move.target);\n")]),
    ("NO_BATON",
     "who leaves a line does not let the next one be called",
     SIMULATION,
     [("engine/shard.c",
       "    else if (!line->ended)\n        line_stir(line);",
       "    else if (!line->ended && !MUTANT(NO_BATON))\n        line_stir(line);")]),
    ("BELL_STAYS_SILENT",
     "those who are told are not woken",
     SIMULATION,
     [("engine/shard.c",
       "    bells_ring(&bells);",
       "    if (!MUTANT(BELL_STAYS_SILENT))\n        bells_ring(&bells);")]),
    ("DELETION_KEEPS_THE_LINE",
     "a deleted queue does not send those away who wait for it",
     SIMULATION,
     [("engine/shard.c",
       "    if (q->line != NULL)\n        end_line(sh, q->line);",
       "    if (q->line != NULL && MUTANT(DELETION_KEEPS_THE_LINE))\n"
       "        q->line->queue = NULL;\n"
       "    else if (q->line != NULL)\n"
       "        end_line(sh, q->line);")]),
    ("DISMISSED_UNTOLD",
     "who waits for a queue that is deleted is sent away without a word",
     SIMULATION,
     [("engine/line.c",
       "    bells_keep(bells, w->watcher->tell(w->watcher, STORE_GONE));",
       "    if (!MUTANT(DISMISSED_UNTOLD))\n"
       "        bells_keep(bells, w->watcher->tell(w->watcher, STORE_GONE));")]),
    ("WAITS_FOR_EVER",
     "a request waits on when its time is over",
     SIMULATION,
     [("api/wait.c",
       "return ctx->waits && stands && ctx->req->waiting->end == WAITING_ON ? ST_WAIT : ST_OK;",
       "return ctx->waits && stands && (ctx->req->waiting->end == WAITING_ON ||\n"
       "                          MUTANT(WAITS_FOR_EVER)) ? ST_WAIT : ST_OK;")]),
    ("NEWCOMER_GOES_FIRST",
     "who has just come goes past those who wait",
     SIMULATION,
     [("engine/line.c",
       "    if (w->line != line)\n        return line->count",
       "    if (w->line != line && MUTANT(NEWCOMER_GOES_FIRST))\n"
       "        return 0;\n"
       "    if (w->line != line)\n        return line->count")]),
    ("LINE_WITHOUT_ORDER",
     "of those who wait anybody takes what there is",
     SIMULATION,
     [("engine/line.c",
       "    size_t n = in_front(line, w);\n",
       "    size_t n = w->line == line && MUTANT(LINE_WITHOUT_ORDER) ? 0\n"
       "                                                             : in_front(line, w);\n")]),
    ("IN_VAIN_TO_THE_END",
     "who was called in vain waits on at the end of the line",
     SIMULATION,
     [("engine/line.c",
       "    w->called = false;\n    if (w->line == line)\n",
       "    w->called = false;\n"
       "    if (w->line == line && MUTANT(IN_VAIN_TO_THE_END)) {\n"
       "        list_remove(&w->link);\n"
       "        list_add_before(&line->waiters, &w->link);\n"
       "    }\n"
       "    if (w->line == line)\n")]),
    ("ABANDONED_CLAIMS",
     "a request whose client has hung up takes messages all the same",
     SIMULATION,
     [("api/wait.c",
       "    return ctx->waits && ctx->req->waiting->end == WAITING_ABANDONED;",
       "    return ctx->waits && ctx->req->waiting->end == WAITING_ABANDONED &&\n"
       "           !MUTANT(ABANDONED_CLAIMS);")]),
    ("GIVEN_BACK_LATE",
     "a claim whose answer is lost ends with its time only",
     SIMULATION,
     [("engine/claim_ops.c",
       "claim_id, uncount, STORE_COUNT_BACK_GONE);",
       "MUTANT(GIVEN_BACK_LATE) ? BYTES_NONE : claim_id,\n"
       "               (uncount || MUTANT(GIVEN_BACK_UNCOUNTED)) &&\n"
       "                   !MUTANT(GIVEN_BACK_COUNTED),\n"
       "               STORE_COUNT_BACK_GONE);")]),
    ("GIVEN_BACK_COUNTED",
     "a claim of whose answer nobody saw a byte counts",
     SIMULATION,
     []), # with the row before
    ("GIVEN_BACK_UNCOUNTED",
     "a claim of whose answer perhaps half was seen does not count",
     SIMULATION,
     []), # likewise
    ("NUMBER_BEGINS_ANEW",
     "the claim numbers of a queue that is made again begin behind its birth, whatever there was",
     SIMULATION,
     [("engine/shard.c",
       "    q->fence_base = born > fence ? born : fence;",
       "    q->fence_base = born > fence || MUTANT(NUMBER_BEGINS_ANEW) ? born : fence;")]),
    ("NUMBER_CHANGES",
     "a renewed claim has another number than it was made with",
     SIMULATION,
     [("engine/claim_ops.c",
       "        *number = claim_fence(v.queue, c);",
       "        *number = claim_fence(v.queue, c) + MUTANT(NUMBER_CHANGES);")]),
    ("PASSWORD_WITHOUT_CASE",
     "a password is right in any case",
     "api/identity_test: a_login_with_the_password_in_another_case_is_401",
     [("auth/auth.c",
       "!bytes_equal_secret(u->password, password)",
       "!(MUTANT(PASSWORD_WITHOUT_CASE)\n"
       "          ? bytes_equal_nocase(u->password, password)\n"
       "          : bytes_equal_secret(u->password, password))")]),
    ("SECRET_LEAVES_EARLY",
     "comparing a secret ends with the first wrong byte",
     "unit/base/bytes_test: a_wrong_secret_is_read_to_its_end_too",
     [("base/bytes.c",
       "    for (size_t i = 0; i < given.len; i++) {\n        size_t at",
       "    for (size_t i = 0; i < given.len; i++) {\n"
       "        if (MUTANT(SECRET_LEAVES_EARLY) && different)\n"
       "            return false;\n"
       "        size_t at")]),
    ("TOKEN_ADMITS_ANYWHERE",
     "logging in with a token does not ask the list of users about the project",
     "api/identity_test: a_token_opens_no_project_that_the_password_would_not",
     [("api/identity/login.c",
       "    if (st == ST_OK)\n        st = auth_admit(",
       "    if (st == ST_OK &&\n"
       "        !(MUTANT(TOKEN_ADMITS_ANYWHERE) && bytes_present(login->token)))\n"
       "        st = auth_admit(")]),
    ("TOKEN_RENEWS_ITSELF",
     "a token that was got for another one lives as long as one got for a password",
     "api/identity_test: a_token_got_for_a_token_ends_with_it",
     [("api/identity/login.c",
       "out->expires_ms = earlier.expires_ms;",
       "out->expires_ms = MUTANT(TOKEN_RENEWS_ITSELF) ? AUTH_NEVER : earlier.expires_ms;")]),
    ("TOKEN_PROJECT_WITHOUT_CASE",
     "a token is good for a project whose name differs in case",
     "api/identity_test: the_project_of_a_token_is_compared_with_its_case",
     [("api/check.c",
       "bytes_equal(named, ctx->token_project)",
       "(MUTANT(TOKEN_PROJECT_WITHOUT_CASE)\n"
       "                               ? bytes_equal_nocase(named, ctx->token_project)\n"
       "                               : bytes_equal(named, ctx->token_project))")]),
    ("CLOCK_FOLLOWS_THE_WALL",
     "setting the wall clock moves deadlines",
     "unit/base/clock_test: setting_the_wall_clock_moves_nothing",
     [("base/clock.c",
       "(hand - 1) / 2 : read_ms(CLOCK_MONOTONIC) + hand / 2;",
       "(hand - 1) / 2 : MUTANT(CLOCK_FOLLOWS_THE_WALL) ? read_ms(CLOCK_REALTIME)\n"
       "                                          : read_ms(CLOCK_MONOTONIC) + hand / 2;")]),
    ("METADATA_CANNOT_SHRINK",
     "metadata that is too large already cannot be made smaller bit by bit",
     "unit/api/wire/patch_test: metadata_that_is_too_large_may_shrink_but_not_grow",
     [("api/wire/patch.c",
       "           made->json.len > old->json.len;",
       "           (MUTANT(METADATA_CANNOT_SHRINK) || made->json.len > old->json.len);")]),
    ("TIME_GOES_BACK",
     "a caller whose clock is behind sees what has expired for others",
     "model/gaps_test: nothing_comes_back_for_a_caller_whose_clock_is_behind",
     [("engine/shard.c",
       "    return sh->now_ms;",
       "    return MUTANT(TIME_GOES_BACK) ? now_ms : sh->now_ms;")]),
    ("CLAIM_STOCK_USED_UP",
     "a claim does not make sure again that it has what it needs when letters have moved",
     "model/gaps_test: "
     "a_claim_whose_stock_was_used_up_while_letters_moved_is_made_all_the_same",
     [("engine/claim_ops.c",
       "    if (st == ST_OK)\n        st = claim_reserve(v->shard, v->queue); /* others",
       "    if (st == ST_OK && !MUTANT(CLAIM_STOCK_USED_UP))\n"
       "        st = claim_reserve(v->shard, v->queue); /* others")]),
    ("HOUSEKEEPING_FORGETS",
     "what is armed while housekeeping goes on wakes nobody",
     "model/gaps_test: what_is_armed_while_housekeeping_goes_on_is_not_forgotten",
     [("engine/housekeep.c",
       "        core_wake_at(&e->core, housekeep(&e->shards[i], now_ms));\n",
       "    {\n"
       "        int64_t due_ms = housekeep(&e->shards[i], now_ms);\n"
       "        core_wake_at(&e->core, due_ms);\n"
       "        least_ms = due_ms < least_ms ? due_ms : least_ms;\n"
       "    }\n"
       "    if (MUTANT(HOUSEKEEPING_FORGETS))\n"
       "        atomic_store(&e->core.next_ms, least_ms);\n"),
      ("engine/housekeep.c",
       "    atomic_store(&e->core.next_ms, WHEEL_NEVER);\n    for",
       "    int64_t least_ms = WHEEL_NEVER;\n"
       "    atomic_store(&e->core.next_ms, WHEEL_NEVER);\n    for")]),
    ("LETTER_WAKES_NOBODY",
     "nobody wakes at the end of a dead letter's life",
     "model/cost_test: a_store_wakes_for_a_dead_letter_whose_life_has_become_shorter",
     [("engine/dead_letter.c",
       "    shard_arm_message(dl->target, &m->due, m->expires_ms);",
       "    if (MUTANT(LETTER_WAKES_NOBODY))\n"
       "        wheel_arm(dl->target->message_wheel, &m->due, m->expires_ms);\n"
       "    else\n"
       "        shard_arm_message(dl->target, &m->due, m->expires_ms);")]),
    ("LETTER_HAS_TWO_IDS",
     "a dead letter is also found by the id of its new place",
     "store/dead_letter_life_test: a_dead_letter_is_not_reached_by_an_id_of_its_new_place",
     [("engine/backlog.c",
       "        if (m != NULL && m->foreign == NULL)",
       "        if (m != NULL && (m->foreign == NULL || MUTANT(LETTER_HAS_TWO_IDS)))")]),
    ("CLAIM_COUNT_STOPS",
     "claims of a message are counted up to 255",
     "store/claim_test: claims_of_a_message_are_counted_beyond_any_small_number",
     [("engine/claim.c",
       "    if (m->claim_count < UINT32_MAX)",
       "    if (m->claim_count < (MUTANT(CLAIM_COUNT_STOPS) ? 255 : UINT32_MAX))")]),
    ("LISTING_GOES_ON_ANEW",
     "a listing that began in a queue goes on in another one of that name",
     "model/gaps_test: a_listing_does_not_go_on_in_a_queue_made_anew",
     [("engine/message_ops.c",
       "(tag == 0 || tag == v.queue->tag)",
       "(tag == 0 || tag == v.queue->tag || MUTANT(LISTING_GOES_ON_ANEW))")]),
    ("VANISHED_QUEUE_NAMED",
     "a queue that goes while queues are listed stays in the page",
     "model/gaps_test: a_queue_that_goes_while_queues_are_listed_is_not_named",
     [("engine/queue_ops.c",
       "        if (md == NULL)\n            continue;",
       "        if (md == NULL && MUTANT(VANISHED_QUEUE_NAMED)) {\n"
       "            view->name = where.name;\n"
       "            kept++;\n"
       "        }\n"
       "        if (md == NULL)\n            continue;")]),
    ("LISTING_KEEPS_THE_LOCK",
     "a listing does not let the lock go however many messages it leaves out",
     "model/gaps_test: a_listing_looks_at_a_slice_of_the_messages_under_the_lock",
     [("engine/message_ops.c",
       "left_out < LIST_SLICE;)",
       "left_out < LIST_SLICE || MUTANT(LISTING_KEEPS_THE_LOCK);)")]),
    ("ANSWER_WITHOUT_LIMIT",
     "an answer has what is left of the request's time",
     "unit/http/front_test: an_answer_has_a_time_limit_of_its_own",
     [("http/answer.c",
       "    conn_enter(&w->conns, ex->conn, CONN_ANSWERING, w->now_ms);\n    if (ex->no_memory)",
       "    if (!MUTANT(ANSWER_WITHOUT_LIMIT))\n"
       "        conn_enter(&w->conns, ex->conn, CONN_ANSWERING, w->now_ms);\n"
       "    if (ex->no_memory)")]),
    ("TOKENS_FOR_EVER",
     "a token is good after its end",
     "unit/auth/access_test: a_token_ends_at_its_time",
     [("auth/access.c",
       "    if (r->now_ms >= line->expires_ms)",
       "    if (r->now_ms >= line->expires_ms && !MUTANT(TOKENS_FOR_EVER))")]),
    ("ANY_PROJECT",
     "a token is good for every project",
     "unit/auth/access_test: a_token_is_good_for_its_projects_and_its_role",
     [("auth/access.c",
       "        return token_line_has(g->projects, r->project)",
       "        return MUTANT(ANY_PROJECT) || token_line_has(g->projects, r->project)")]),
    ("ANY_ROLE",
     "every role may do everything",
     "unit/auth/access_test: a_token_is_good_for_its_projects_and_its_role",
     [("auth/access.c",
       "    if (st == ST_OK && r->action != ACTION_COUNT &&",
       "    if (st == ST_OK && r->action != ACTION_COUNT && !MUTANT(ANY_ROLE) &&")]),
    ("KEYSTONE_TOKENS_FOR_EVER",
     "a token that Keystone knows is good after its end, while it is remembered",
     "api/access_test: a_token_of_keystone_stands_for_its_project_until_it_ends",
     [("auth/keystone.c",
       "    if (v->until_ms > v->expires_ms)",
       "    if (v->until_ms > v->expires_ms && !MUTANT(KEYSTONE_TOKENS_FOR_EVER))"),
      ("auth/keystone.c",
       "    if (v->status == ST_OK && now_ms >= v->expires_ms)",
       "    if (v->status == ST_OK && now_ms >= v->expires_ms &&\n"
       "        !MUTANT(KEYSTONE_TOKENS_FOR_EVER))")]),
    ("KEYSTONE_FAILS_OPEN",
     "while Keystone does not answer, the headers are believed",
     "api/access_test: no_route_lets_anybody_in_while_keystone_does_not_answer",
     [("api/check.c",
       "    reason_init(&ctx->access_why);\n    st = access_ask(ctx->access, &request, "
       "ctx->req->arena, &caller, &ctx->access_why);\n",
       "    reason_init(&ctx->access_why);\n    st = access_ask(ctx->access, &request, "
       "ctx->req->arena, &caller, &ctx->access_why);\n"
       "    if (MUTANT(KEYSTONE_FAILS_OPEN) && st == ST_UNAVAILABLE)\n"
       "        return ST_OK;\n")]),
    ("KEYSTONE_BELIEVED_FOR_EVER",
     "what Keystone has said of a token is never asked again",
     "unit/auth/verdict_test: what_is_kept_is_found_until_its_time_is_over",
     [("auth/verdict.c",
       "    if (now_ms >= v->until_ms) {",
       "    if (now_ms >= v->until_ms && !MUTANT(KEYSTONE_BELIEVED_FOR_EVER)) {")]),
    ("ANY_SUCCESS",
     "a document is believed with whatever status of success it comes",
     "unit/auth/keystone_test: whatever_else_it_says_lets_nobody_in",
     [("auth/keystone.c",
       "    switch (code) {",
       "    switch (MUTANT(ANY_SUCCESS) && code / 100 == 2 ? 200 : code) {")]),
    ("NAMELESS_FOR_ONE",
     "in version 1 a token of one project is for the nameless one, if none is named",
     "unit/auth/access_test: a_token_is_good_for_its_projects_and_its_role",
     [("auth/access.c",
       "    *project = token_line_project(g->projects);",
       "    *project = token_line_project(g->projects);\n"
       "    if (MUTANT(NAMELESS_FOR_ONE)) {\n"
       "        *project = BYTES_NONE;\n"
       "        return ST_OK;\n"
       "    }")]),
    ("ANY_CERTIFICATE",
     "a certificate that is not good lets in",
     "unit/auth/access_test: a_certificate_lets_in_like_a_token",
     [("auth/access.c",
       "r->certificate != NULL && r->certificate->good",
       "r->certificate != NULL &&\n"
       "                   (r->certificate->good || MUTANT(ANY_CERTIFICATE))")]),
    ("TOKEN_BESIDE_CERTIFICATE",
     "a token beside a certificate is not looked at",
     "unit/auth/access_test: two_credentials_at_a_time_are_one_too_many",
     [("auth/access.c",
       "    if (line != NULL && digest != NULL)",
       "    if (MUTANT(TOKEN_BESIDE_CERTIFICATE) && line != NULL)\n"
       "        digest = NULL;\n"
       "    if (line != NULL && digest != NULL)")]),
    ("ANY_KEY",
     "a key need not be that of its certificate",
     "unit/http/tls_test: what_does_not_fit_or_is_nothing_is_refused",
     [("http/tls.c",
       "    if (memcmp(of_key, of_certificate, ID_BYTES) != 0)",
       "    if (memcmp(of_key, of_certificate, ID_BYTES) != 0 && !MUTANT(ANY_KEY))")]),
    ("EVERY_DOOR",
     "behind the door for metrics there is everything",
     "api/access_test: every_route_lets_in_whom_it_should_and_nobody_else",
     [("api/api.c",
       "    return ctx->req->door == API_DOOR_MAIN ||",
       "    return MUTANT(EVERY_DOOR) || ctx->req->door == API_DOOR_MAIN ||")]),
    ("SAME_PLACE_TWICE",
     "an address may stand in the list twice",
     "unit/http/listen_test: no_place_is_listened_on_twice",
     [("http/listen.c",
       "        if (collide(e, last)) {",
       "        if (collide(e, last) && !MUTANT(SAME_PLACE_TWICE)) {")]),
    ("POLICY_STAYS",
     "another list of tokens comes without its policy",
     "unit/auth/access_test: the_policy_comes_with_the_list",
     [("auth/access.c",
       "    a->policy = *policy;",
       "    if (!MUTANT(POLICY_STAYS))\n"
       "        a->policy = *policy;")]),
    ("BUCKET_OVERFLOWS",
     "what a project has not asked for is kept when its rate is made less",
     "unit/api/quota_test: another_rate_counts_at_once",
     [("api/quota.c",
       "    if (t->level > rate * MILLI)",
       "    if (t->level > rate * MILLI && !MUTANT(BUCKET_OVERFLOWS))")]),
    ("SEAT_STAYS",
     "a connection that has ended counts on for its project",
     "unit/api/quota_test: a_connection_has_one_seat_and_gives_it_back",
     [("api/quota.c",
       "    t->connections--;",
       "    t->connections -= !MUTANT(SEAT_STAYS);")]),
    ("WAITER_STAYS",
     "a request that has waited counts on for its project",
     "unit/api/quota_test: so_many_may_wait",
     [("api/quota.c",
       "    t->waiters--;",
       "    t->waiters -= !MUTANT(WAITER_STAYS);")]),
    ("ONE_COUNT_FOR_ALL",
     "refusals are counted for the first of the limits, whichever it was",
     "unit/api/quota_test: refusals_are_counted_by_their_limit",
     [("api/quota.c",
       "&q->refused[st - ST_PROJECT_QUEUES]",
       "&q->refused[MUTANT(ONE_COUNT_FOR_ALL) ? 0 : st - ST_PROJECT_QUEUES]")]),
    ("ONE_QUEUE_MORE",
     "a project may have a queue more than its limit",
     "store/limits_test: queues_are_made_up_to_the_limit_and_those_there_are_stay",
     [("engine/directory.c",
       "p->names.count >= most)",
       "p->names.count >= most + MUTANT(ONE_QUEUE_MORE))")]),
    ("LIMITS_UNDESCRIBED",
     "/openapi.json does not know 429",
     "api/openapi_test: limits_of_projects_are_described_when_they_are_in_force",
     [("api/openapi/document.c",
       "    if (p->version->open)\n"
       "        return false; /* it is of no project */",
       "    if (p->version->open || MUTANT(LIMITS_UNDESCRIBED))\n"
       "        return false; /* it is of no project */")]),
    ("VERDICTS_UNBOUNDED",
     "what Keystone has said is kept without a bound",
     "unit/auth/verdict_test: what_was_not_used_for_longest_goes_first",
     [("auth/verdict.c",
       "    if (c->map.count == c->most)",
       "    if (c->map.count == c->most && !MUTANT(VERDICTS_UNBOUNDED))")]),
    ("REFUSAL_BELIEVED_LONG",
     "that Keystone does not know a token is believed as long as that it does",
     "unit/auth/keystone_test: a_refusal_is_believed_for_less",
     [("auth/keystone.c",
       "q->asked_ms + (cache_ms < KEYSTONE_REFUSED_MS ?",
       "q->asked_ms +\n"
       "        (cache_ms < KEYSTONE_REFUSED_MS || MUTANT(REFUSAL_BELIEVED_LONG) ?")]),
    ("STUB_METRICS_OPEN",
     "with a list of users the identity stub shows metrics to strangers",
     "api/identity_test: with_a_list_of_users_metrics_are_for_nobody",
     [("api/check.c",
       "    if (!requires_stub_token(ctx))",
       "    if (!requires_stub_token(ctx) || MUTANT(STUB_METRICS_OPEN))")]),
    ("RULE_ONLY_ADDS",
     "a rule of a policy takes nothing from anybody",
     "unit/auth/policy_test: a_rule_says_anew_who_may_do_something",
     [("auth/policy.c",
       "p->allowed[role] & ~bit;",
       "p->allowed[role] & ~(MUTANT(RULE_ONLY_ADDS) ? 0 : bit);")]),
    ("POLICY_IN_PART",
     "of a policy that is refused the rules in front of the mistake count",
     "unit/auth/policy_test: what_cannot_be_a_policy_changes_nothing",
     [("auth/policy.c",
       "    if (st == ST_OK)\n"
       "        *p = next;",
       "    if (st == ST_OK || MUTANT(POLICY_IN_PART))\n"
       "        *p = next;")]),
    ("FIRST_NAME_COUNTS",
     "a certificate with several names stands for the line of its first name",
     "unit/auth/certificates_test: the_first_line_that_fits_counts",
     [("auth/certificates.c",
       "        if (found < first)",
       "        if (found < first && (first == FREE_SLOT || !MUTANT(FIRST_NAME_COUNTS)))")]),
    ("PAIR_STAYS",
     "another certificate and key are read, and the old ones go on",
     "unit/http/tls_test: who_has_pinned_the_old_one_keeps_it",
     [("http/tls.c",
       "    before = t->pair;\n"
       "    t->pair = pair;",
       "    before = MUTANT(PAIR_STAYS) ? pair : t->pair;\n"
       "    t->pair = MUTANT(PAIR_STAYS) ? t->pair : pair;")]),
    ("WAITS_AGAIN",
     "the time until a message is claimed is counted for each of its claims",
     "store/figures_test: times_fall_into_the_histograms",
     [("engine/claim.c",
       "    if (m->claim_count == 0)\n"
       "        figures_span(",
       "    if (m->claim_count == 0 || MUTANT(WAITS_AGAIN))\n"
       "        figures_span(")]),
    ("POPPED_IS_DELETED",
     "messages that were popped are counted as deleted",
     "store/figures_test: what_clients_do_is_counted",
     [("engine/message_ops.c",
       "    commit_discarded(&v, &d, STORE_COUNT_POPPED);",
       "    commit_discarded(&v, &d, MUTANT(POPPED_IS_DELETED) ? STORE_COUNT_DELETED\n"
       "                                                       : STORE_COUNT_POPPED);")]),
    ("OLD_GROUPS_IGNORED",
     "the memory of a control group of the first version is not looked at",
     "unit/main/machine_test: groups_of_the_first_version_count_too",
     [("main/machine.c",
       "        else if (lists(controllers, \"memory\"))",
       "        else if (lists(controllers, \"memory\") && !MUTANT(OLD_GROUPS_IGNORED))")]),
    ("ALL_MEMORY",
     "by default the budget is all of the memory there is",
     "e2e/daemon_test: Options.test_without_max_memory_the_budget_is_half_of_what_there_is",
     [("main/daemon.c",
       "machine_memory(\"\") / 2)",
       "machine_memory(\"\") / (MUTANT(ALL_MEMORY) ? 1 : 2))")]),
    ("LINGERS_FOR_EVER",
     "a lingering socket is closed only when the client ends",
     "unit/http/linger_test: lingering_ends_when_its_time_is_up",
     [("http/linger.c",
       "        if (slot->fd >= 0 && slot->until_ms <= now_ms)",
       "        if (slot->fd >= 0 && slot->until_ms <= now_ms && !MUTANT(LINGERS_FOR_EVER))")]),
    ("ERROR_WITHOUT_LINGERING",
     "a request that libmicrohttpd refuses by itself is closed at once",
     "unit/http/front_test: "
     "what_libmicrohttpd_refuses_by_itself_is_refused_with_a_lingering_close",
     [("http/front.c",
       "(c->exchange == NULL || c->exchange->code == 0))\n        c->linger = true;",
       "(c->exchange == NULL || c->exchange->code == 0))\n"
       "        c->linger = !MUTANT(ERROR_WITHOUT_LINGERING);")]),
    ("CHUNKS_WITHOUT_LINGERING",
     "a chunked body far too large is refused and the connection closed at once",
     "unit/http/front_test: a_chunked_body_far_too_large_is_refused_with_a_lingering_close",
     [("http/front.c",
       "    refuse_past(ex, REFUSAL_TOO_LARGE);\n    return MHD_NO;",
       "    refuse_past(ex, REFUSAL_TOO_LARGE);\n"
       "    ex->conn->linger = !MUTANT(CHUNKS_WITHOUT_LINGERING);\n"
       "    return MHD_NO;")]),
    ("ANSWERED_BEFORE_DURABLE",
     "an answer goes out before what it tells of is on the disk",
     CRASH,
     [("journal/append.c",
       "    if (position <= atomic_load(&j->durable))",
       "    if (position <= atomic_load(&j->durable) || MUTANT(ANSWERED_BEFORE_DURABLE))")]),
    ("NAMES_NOT_SYNCED",
     "the name of a new segment is not made durable before it is written",
     CRASH,
     [("journal/segment.c",
       "        error = disk_sync_names(s->disk);\n"
       "    if (error == 0)\n"
       "        error = add(",
       "        error = MUTANT(NAMES_NOT_SYNCED) ? 0 : disk_sync_names(s->disk);\n"
       "    if (error == 0)\n"
       "        error = add(")]),
    ("DROPPED_TOO_EARLY",
     "old segments go before the end of the sweep is durable",
     CRASH,
     [("journal/commit.c",
       "    if (j->sweep.ended == 0 || j->sweep.ended > atomic_load(&j->durable))",
       "    if (j->sweep.ended == 0 || (j->sweep.ended > atomic_load(&j->durable) &&\n"
       "                                !MUTANT(DROPPED_TOO_EARLY)))"),
      ("journal/commit.c",
       "    sweep(j, appended);\n"
       "    return true;",
       "    sweep(j, appended);\n"
       "    if (MUTANT(DROPPED_TOO_EARLY))\n"
       "        (void)drop_oldest(j);\n"
       "    return true;")]),
    ("DROPPED_TOGETHER",
     "old segments go without an order",
     CRASH,
     [("journal/commit.c",
       "    if (error == 0)\n"
       "        error = disk_sync_names(s->disk);",
       "    if (error == 0 && !MUTANT(DROPPED_TOGETHER))\n"
       "        error = disk_sync_names(s->disk);")]),
    ("SYNC_TRIED_AGAIN",
     "a sync that failed is tried again, and believed",
     CRASH,
     [("journal/commit.c",
       "    int error = sync_timed(j);\n"
       "\n"
       "    if (error != 0) {",
       "    int error = sync_timed(j);\n"
       "\n"
       "    if (error != 0 && MUTANT(SYNC_TRIED_AGAIN))\n"
       "        error = segments_sync(&j->segments);\n"
       "    if (error != 0) {")]),
    ("CLAIMS_NOT_SHOWN",
     "a sweep does not show the claims",
     CRASH,
     [("engine/sweep.c",
       "queue_transient(q) ? SWEEP_SUBSCRIPTIONS : SWEEP_CLAIMS);",
       "queue_transient(q) ? SWEEP_SUBSCRIPTIONS\n"
       "                    : MUTANT(CLAIMS_NOT_SHOWN) ? SWEEP_MESSAGES : SWEEP_CLAIMS);")]),
    ("SWEPT_ONCE",
     "a sweep leaves out what the one before has shown",
     CRASH,
     [("engine/sweep.c",
       "    e->sweep_epoch++;",
       "    e->sweep_epoch += e->sweep_epoch == 0 || !MUTANT(SWEPT_ONCE);")]),
    ("MOVE_WITHOUT_BODY",
     "a dead letter is logged without its body",
     CRASH,
     [("journal/record_type.c",
       "    return row_of(type)->form;",
       "    if (type == RECORD_MOVE && MUTANT(MOVE_WITHOUT_BODY))\n"
       "        return RECORD_FORM_SHORT;\n"
       "    return row_of(type)->form;")]),
    ("MOVE_IN_TWO",
     "a dead letter comes into its new queue and leaves the old one later",
     CRASH,
     [("engine/replay.c",
       "            drop_message(r, backlog_at(source->backlog, told.old_number));",
       "            drop_message(r, MUTANT(MOVE_IN_TWO)\n"
       "                                ? NULL\n"
       "                                : backlog_at(source->backlog, told.old_number));")]),
    ("DELETE_LOST",
     "what was deleted is there again after a restart",
     CRASH,
     [("engine/replay.c",
       "    case STORE_CHANGE_DELETE:\n"
       "        remove_messages(r, change);",
       "    case STORE_CHANGE_DELETE:\n"
       "        if (!MUTANT(DELETE_LOST))\n"
       "            remove_messages(r, change);")]),
    ("RELEASE_LOST",
     "what was given back is held again after a restart",
     CRASH,
     [("engine/replay.c",
       "        release_claim(r, change);",
       "        if (!MUTANT(RELEASE_LOST))\n"
       "            release_claim(r, change);")]),
    ("MEMBERS_LOST",
     "a claim holds what the log shows after it, whether it was its own or not",
     CRASH,
     [("engine/replay.c",
       "        if (m == NULL)\n"
       "            continue;\n"
       "        hold(m, c);",
       "        if (m == NULL || MUTANT(MEMBERS_LOST))\n"
       "            continue;\n"
       "        hold(m, c);")]),
    ("LOADED_CLAIM_ENDS_LATER",
     "a claim that was loaded lasts a second longer than it did",
     "store/image_test: deadlines_that_were_loaded_come_as_before",
     [("engine/load_ops.c",
       "    shard_arm_claim(sh, &c->claim->due, view->ends_ms);",
       "    shard_arm_claim(sh, &c->claim->due,\n"
       "                    view->ends_ms + (MUTANT(LOADED_CLAIM_ENDS_LATER) ? 1000 : 0));")]),
    ("LOADED_CLAIM_UNTOLD",
     "after a restart what was loaded as claimed is free",
     "store/image_test: a_claim_that_was_loaded_finishes_renews_and_releases_with_its_id",
     [("engine/load_ops.c",
       "        (void)observe_claim(q, STORE_CHANGE_CLAIM, l->claims[i].claim, l->v.now_ms);",
       "        if (!MUTANT(LOADED_CLAIM_UNTOLD))\n"
       "            (void)observe_claim(q, STORE_CHANGE_CLAIM, l->claims[i].claim,\n"
       "                                l->v.now_ms);")]),
    ("STATE_IS_LOST",
     "a state that cannot be loaded leaves nothing of the old one",
     "api/state_test: when_memory_runs_out_the_old_state_is_there",
     [("api/state.c",
       "    if (!put_back(k, kept))",
       "    if (!MUTANT(STATE_IS_LOST) && !put_back(k, kept))")]),
    ("TIME_FROM_THE_WALL",
     "a clock that was set back brings back what was over",
     CRASH,
     [("journal/recover.c",
       "    if (out->now_ms < out->last_ms)",
       "    if (out->now_ms < out->last_ms && !MUTANT(TIME_FROM_THE_WALL))")]),
    ("TORN_IS_DAMAGE",
     "a start is refused after a crash in the middle of a commit",
     CRASH,
     [("journal/reader.c",
       "    later = frame_search(",
       "    if (MUTANT(TORN_IS_DAMAGE))\n"
       "        return damaged(r, from, \"is torn\", 0);\n"
       "    later = frame_search(")]),
    ("ROOM_NOT_COUNTED",
     "more is taken in than the segments have room for that a full disk has left",
     "unit/journal/journal_test: what_is_taken_in_at_once_fits_on_a_full_disk",
     [("journal/append.c",
       "    if (j->starting || filling",
       "    if (MUTANT(ROOM_NOT_COUNTED) && room_for(j, kind) > 0)\n"
       "        return ST_OK;\n"
       "    if (j->starting || filling")]),
    ("DAMAGE_IS_TORN",
     "what stands behind damage is given up without a word",
     "unit/journal/journal_test: a_torn_end_is_no_damage_but_a_hole_is",
     [("journal/reader.c",
       "    if (later < r->len)",
       "    if (later < r->len && !MUTANT(DAMAGE_IS_TORN))")]),
    ("UNSYNCED_BELIEVED",
     "what a killed process has left in memory only counts as durable",
     CRASH,
     [("journal/reader.c",
       "    if (error == 0 && settle)\n"
       "        error = disk_sync(disk, r->file);",
       "    if (error == 0 && settle && !MUTANT(UNSYNCED_BELIEVED))\n"
       "        error = disk_sync(disk, r->file);")]),
    ("MEMORY_BELIEVED",
     "a start reads what a failed sync has left in memory",
     CRASH,
     [("journal/reader.c",
       "    if (error == 0 && settle)\n"
       "        disk_forget(disk, r->file);",
       "    if (error == 0 && settle && !MUTANT(MEMORY_BELIEVED))\n"
       "        disk_forget(disk, r->file);")]),
    ("NOBODY_FLUSHES",
     "a worker rests without setting the log going",
     "unit/http/answer_test: a_worker_flushes_the_log_before_it_rests",
     [("http/worker.c",
       "    store_flush(w->shared->config->store);",
       "    if (!MUTANT(NOBODY_FLUSHES))\n"
       "        store_flush(w->shared->config->store);")]),
    ("HANG_UNSEEN",
     "a supervisor is told that all is well while a worker hangs",
     "unit/main/watchdog_test: a_worker_that_is_stuck_in_the_store_is_not_alive_and_an_idle_one_is",
     [("http/server.c",
       "    for (size_t i = 0; i < s->worker_count; i++) {\n"
       "        const struct worker *w = &s->workers[i];\n",
       "    for (size_t i = 0; i < s->worker_count && !MUTANT(HANG_UNSEEN); i++) {\n"
       "        const struct worker *w = &s->workers[i];\n")]),
    ("ONE_NONCE",
     "all segments have the same nonce",
     "unit/journal/journal_test: every_segment_has_a_nonce_of_its_own",
     [("journal/segment.c",
       "    entropy_take(&s->entropy, s->nonce, NONCE_BYTES);",
       "    if (!MUTANT(ONE_NONCE))\n"
       "        entropy_take(&s->entropy, s->nonce, NONCE_BYTES);")]),
    ("UPDATE_NOT_LOGGED",
     "a queue's metadata are after a restart as they were before they were replaced",
     "store/queue_test: metadata_is_replaced_only_by_who_has_seen_the_present_version",
     [("engine/queue_ops.c",
       "        if (observed(&e->core))\n"
       "            (void)observe_queue(v.queue, STORE_CHANGE_META, v.now_ms);",
       "        if (observed(&e->core) && !MUTANT(UPDATE_NOT_LOGGED))\n"
       "            (void)observe_queue(v.queue, STORE_CHANGE_META, v.now_ms);")]),
    ("NUMBERS_LOST",
     "a queue without messages gives out their ids again after a restart",
     CRASH,
     [("engine/replay.c",
       "    raise(&v->last_seq, change->last_number);\n",
       "    if (!MUTANT(NUMBERS_LOST))\n"
       "        raise(&v->last_seq, change->last_number);\n")]),
    ("LOAN_FORGOTTEN",
     "a transient queue counts its claims from the beginning after a restart",
     CRASH,
     [("engine/replay.c",
       "    raise(&v->last_claim, change->last_claim);\n"
       "    core_use_up",
       "    if (!MUTANT(LOAN_FORGOTTEN))\n"
       "        raise(&v->last_claim, change->last_claim);\n"
       "    core_use_up")]),
    ("TWO_NAMES_ONE_SERIES",
     "a project whose name looks like an escaped byte has the series of one that has that byte",
     "unit/metrics/exposition_test: two_values_never_look_the_same",
     [("metrics/exposition.c",
       "(looks_like_one && *behind == 'x');",
       "(looks_like_one && *behind == 'x' && !MUTANT(TWO_NAMES_ONE_SERIES));")]),
    ("SERIES_TWICE",
     "a queue that is made anew while figures are written is told twice",
     "api/metrics_test: no_series_comes_twice",
     [("api/handlers/metrics.c",
       "        if (shown->marks[i] == mark &&",
       "        if (!MUTANT(SERIES_TWICE) && shown->marks[i] == mark &&")]),
    ("STRANGERS_MAKE_SERIES",
     "requests with methods that a path does not have get figures of their own",
     "api/route_test: the_route_is_told_for_the_log",
     [("api/api.c",
       "    if (ctx->route != NULL) /* figures",
       "    if (ctx->route != NULL || MUTANT(STRANGERS_MAKE_SERIES)) /* figures")]),
    ("LATE_WITHOUT_A_CLAIM",
     "who deletes what others hold, and never held it, counts as too late",
     "store/figures_test: a_deletion_that_comes_too_late_is_counted",
     [("engine/message_ops.c",
       "    if (by_claim && (st",
       "    if ((by_claim || MUTANT(LATE_WITHOUT_A_CLAIM)) && (st")]),
    ("NONCE_STANDS",
     "from the 700th body of a salt on the nonce stays the same",
     "unit/seal/seal_test: no_two_bodies_of_many_threads_have_the_same_nonce",
     [("seal/seal.c",
       "        s->present.number++;",
       "        s->present.number += !MUTANT(NONCE_STANDS) || s->present.number != 700;")]),
    ("PROJECT_LEFT_OUT",
     "a body opens in every project",
     "api/encryption_test: a_body_of_another_project_does_not_open",
     [("seal/seal.c",
       "    out->len = HEAD + 4 + scope->project.len;",
       "    out->len = HEAD + 4 + (MUTANT(PROJECT_LEFT_OUT) ? 0 : scope->project.len);")]),
    ("TAG_BELIEVED",
     "a body opens whatever its tag says",
     "unit/seal/cipher_test: a_tag_that_is_not_the_text_s_is_found",
     [("seal/cipher.c",
       "    if (error == 0)\n        return ST_OK;\n    memset",
       "    if (error == 0 || MUTANT(TAG_BELIEVED))\n        return ST_OK;\n    memset")]),
    ("POST_WAKES_NOBODY",
     "a post does not make those due who were idle",
     SIMULATION,
     [("engine/subscription.c",
       "    if (!list_empty(&f->idle)) {\n        splice",
       "    if (!list_empty(&f->idle) && !MUTANT(POST_WAKES_NOBODY)) {\n        splice")]),
    ("DELIVERER_UNTOLD",
     "whoever delivers is not told that there is something to deliver",
     SIMULATION,
     [("engine/subscription.c",
       "    sh->tells = true;\n}",
       "    sh->tells = !MUTANT(DELIVERER_UNTOLD);\n}")]),
    ("UNCONFIRMED_GET_MESSAGES",
     "who has to confirm gets messages before",
     SIMULATION,
     [("engine/subscription.c",
       "    bool wanted = s->confirmed || !sh->core->require_confirmation;",
       "    bool wanted = s->confirmed || !sh->core->require_confirmation ||\n"
       "                  MUTANT(UNCONFIRMED_GET_MESSAGES);")]),
    ("CONFIRMED_FROM_THE_START",
     "who confirms is asked on",
     SIMULATION,
     [("engine/subscription_ops.c",
       "        else if (found->pending == PENDING_CONFIRM)",
       "        else if (found->pending == PENDING_CONFIRM &&\n"
       "                 !MUTANT(CONFIRMED_FROM_THE_START))")]),
    ("FAILURE_MOVES_ON",
     "what failed is not tried again",
     SIMULATION,
     [("engine/delivery_ops.c",
       "    if (again_ms <= v->now_ms || !same || other) {",
       "    if (MUTANT(FAILURE_MOVES_ON) && d->notice == STORE_NOTICE_MESSAGE)\n"
       "        pass(s, d->number, d->ordinal);\n"
       "    if (again_ms <= v->now_ms || !same || other) {")]),
    ("FALLEN_OUT_UNCOUNTED",
     "what a subscriber has lost of a feed that is full is not counted",
     SIMULATION,
     [("engine/delivery_ops.c",
       "        s->fallen_out += feed_advance(s->feed, &s->cursor, number, ordinal);",
       "        s->fallen_out += feed_advance(s->feed, &s->cursor, number, ordinal) *\n"
       "                         !MUTANT(FALLEN_OUT_UNCOUNTED);")]),
    ("LOST_BEFORE_THE_RESTART",
     "what fell out of a feed before a restart is forgotten by it",
     SIMULATION,
     [("engine/revive.c",
       "        s->fallen_out += feed_lost_behind(s->feed, s->cursor.after);",
       "        if (!MUTANT(LOST_BEFORE_THE_RESTART))\n"
       "            s->fallen_out += feed_lost_behind(s->feed, s->cursor.after);")]),
    ("FEED_WITHOUT_BOUNDS",
     "a feed keeps more bytes than it may",
     SIMULATION,
     [("engine/subscription.c",
       "    while (most != 0 && f->bytes > most",
       "    while (most != 0 && !MUTANT(FEED_WITHOUT_BOUNDS) && f->bytes > most")]),
    ("FEED_DROPS_ONE_TOO_MANY",
     "a feed that is full loses more than it has to",
     SIMULATION,
     [("engine/subscription.c",
       "f->bytes > most && f->entries.live > 1)",
       "f->bytes > (MUTANT(FEED_DROPS_ONE_TOO_MANY) ? most / 4 : most) &&\n"
       "           f->entries.live > 1)")]),
    ("TRIM_DROPS_ONE_TOO_MANY",
     "trimming takes what one subscriber has in front, too",
     SIMULATION,
     [("engine/feed.c",
       "           first->waiting == 0) {",
       "           first->waiting <= (size_t)MUTANT(TRIM_DROPS_ONE_TOO_MANY)) {")]),
    ("EXPIRED_IS_DELIVERED",
     "a message is told of after its life",
     SIMULATION,
     [("engine/delivery_ops.c",
       "           now_ms >= entry->expires_ms && *budget > 0) {",
       "           now_ms >= entry->expires_ms && *budget > 0 &&\n"
       "           !MUTANT(EXPIRED_IS_DELIVERED)) {")]),
    ("RETRY_TOO_EARLY",
     "what failed comes again before its time",
     SIMULATION,
     [("engine/delivery_ops.c",
       "    s->again_ms = again_ms;",
       "    s->again_ms = again_ms - MUTANT(RETRY_TOO_EARLY);")]),
    ("RETRY_NEVER",
     "what failed does not come again",
     SIMULATION,
     [("engine/subscription.c",
       "    if (s->state == SUBSCRIPTION_WAITS && s->again_ms < due_ms)",
       "    if (s->state == SUBSCRIPTION_WAITS && s->again_ms < due_ms &&\n"
       "        !MUTANT(RETRY_NEVER))")]),
    ("REPLAY_AT_THE_END",
     "after a restart subscribers begin behind what there is",
     SIMULATION,
     [("engine/revive.c",
       "    } else if (s->follows) {",
       "    } else if (s->follows && !MUTANT(REPLAY_AT_THE_END)) {")]),
    ("CURSOR_UNTOLD",
     "the log never hears how far subscribers have come",
     SIMULATION,
     [("engine/delivery_ops.c",
       "    if (++s->untold < UNTOLD_MOST &&",
       "    if (MUTANT(CURSOR_UNTOLD))\n        return;\n"
       "    if (++s->untold < UNTOLD_MOST &&")]),
    ("LENT_NOTICE_FORGOTTEN",
     "the log takes a notice that is lent for one that was told",
     SIMULATION,
     [("engine/observe.c",
       "        .pending = subscription_untold(s),",
       "        .pending = MUTANT(LENT_NOTICE_FORGOTTEN) ? s->pending : subscription_untold(s),")]),
    ("SWEEP_WITHOUT_FEED",
     "a sweep leaves out what subscribers have still to get",
     SIMULATION,
     [("engine/sweep.c",
       "q->feed != NULL ? SWEEP_FEED :",
       "q->feed != NULL && !MUTANT(SWEEP_WITHOUT_FEED) ? SWEEP_FEED :")]),
    ("PURGE_EMPTIES_FEED",
     "a purge of messages takes what subscribers have still to get",
     SIMULATION,
     [("engine/queue_ops.c",
       "        count_dropped(v);\n        graveyard_purge",
       "    while (MUTANT(PURGE_EMPTIES_FEED) && v->queue->feed != NULL &&\n"
       "           v->queue->feed->entries.live > 1)\n"
       "        (void)feed_drop(v->queue->feed, v->engine->core.mem, &v->shard->pool);\n"
       "        count_dropped(v);\n        graveyard_purge")]),
    ("PURGE_KEEPS_SUBSCRIPTIONS",
     "a purge of subscriptions leaves them",
     SIMULATION,
     [("engine/queue_ops.c",
       "    if (!subscriptions)\n        return;",
       "    if (!subscriptions || MUTANT(PURGE_KEEPS_SUBSCRIPTIONS))\n        return;")]),
    ("UNSUBSCRIBED_COMES_BACK",
     "the log does not hear of who was unsubscribed",
     SIMULATION,
     [("engine/subscription_ops.c",
       "        if (observed(&v.engine->core))\n"
       "            (void)observe_subscription(v.queue, STORE_CHANGE_SUBSCRIPTION_GONE, found,",
       "        if (observed(&v.engine->core) && !MUTANT(UNSUBSCRIBED_COMES_BACK))\n"
       "            (void)observe_subscription(v.queue, STORE_CHANGE_SUBSCRIPTION_GONE, found,")]),
    ("FAILURES_INHERITED",
     "a message counts the failures of one that fell out before it",
     SIMULATION,
     [("engine/subscription.c",
       "    if (s->failed_at == 0 || s->state == SUBSCRIPTION_LENT)",
       "    if (s->failed_at == 0 || s->state == SUBSCRIPTION_LENT ||\n"
       "        MUTANT(FAILURES_INHERITED))")]),
]
