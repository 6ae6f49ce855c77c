/*
 * patient: a store that repeats each call of another one while it returns ST_AGAIN,
 * for tests that are not about slices.
 */
#ifndef TESTS_SUPPORT_PATIENT_H
#define TESTS_SUPPORT_PATIENT_H

#include "claimd/store/store.h"

/* Takes the store. Aborts without memory. */
struct store *patient_open(struct store *hasty);

/* The store that it calls. */
struct store *patient_inside(struct store *s);

#endif
