/*
 * patient: a store that repeats each call of another one while it returns ST_AGAIN,
 * for tests that are not about slices.
 */
#ifndef TESTS_SUPPORT_PATIENT_H
#define TESTS_SUPPORT_PATIENT_H

#include "claimd/store/store.h"

/* Takes the store. Aborts without memory. */
struct store *patient_open(struct store *hasty);

/* Calls this, for a load of messages, before it repeats a call. */
void patient_between(struct store *s, void (*between)(void *arg), void *arg);

/* The store that it calls. */
struct store *patient_inside(struct store *s);

#endif
