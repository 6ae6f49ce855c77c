#include "support/role_words.h"

const struct role_word role_words[ROLE_WORDS] = {
    {"reader", " claims:get messages:get messages:get_all queues:get queues:get_all "
               "queues:stats subscription:get subscription:get_all schedules:get "
               "topics:get topics:get_all topics:stats "
               "home:get ping:get "},
    {"producer", " messages:create queues:get queues:get_all queues:stats queues:create "
                 "topics:get topics:get_all topics:stats topics:create "
                 "home:get ping:get "},
    {"worker",
     " claims:create claims:get claims:update claims:delete messages:get "
     "messages:get_all messages:delete messages:delete_all messages:pop queues:get "
     "queues:get_all queues:stats queues:create schedules:get "
     "topics:get topics:get_all topics:stats topics:create "
     "home:get ping:get "},
    {"operator",
     " claims:get claims:delete messages:get messages:get_all messages:delete "
     "messages:delete_all messages:redrive queues:get queues:get_all queues:stats "
     "queues:create queues:update queues:delete queues:purge queues:pause "
     "subscription:get "
     "subscription:get_all "
     "subscription:create subscription:update subscription:delete "
     "subscription:confirm subscription:progress schedules:get schedules:set "
     "topics:get topics:get_all topics:stats topics:create topics:update topics:delete "
     "topics:purge "
     "home:get ping:get health:get "
     "metrics:get ci:use state:dump state:load "},
    {"admin",
     " claims:create claims:get claims:update claims:delete messages:create messages:get "
     "messages:get_all messages:delete messages:delete_all messages:pop "
     "messages:redrive queues:get "
     "queues:get_all queues:stats queues:create queues:update queues:delete "
     "queues:purge queues:pause queues:share subscription:get subscription:get_all "
     "subscription:create subscription:update subscription:delete "
     "subscription:confirm subscription:progress schedules:get schedules:set "
     "topics:get topics:get_all topics:stats topics:create topics:update topics:delete "
     "topics:purge "
     "home:get ping:get health:get "
     "metrics:get ci:use state:dump state:load "},
};
