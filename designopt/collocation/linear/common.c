/* Symmetric indefinite sparse systems A x = b by a multifrontal L D L^T with threshold pivoting.

   Duff, Reid, The multifrontal solution of indefinite sparse symmetric linear equations, ACM Transactions on
   Mathematical Software 9 (1983) 302. What is special to programs of trajectories: fronts are many and small, and each
   equation is eliminated together with a variable of its own (ordering.c), because its own diagonal is zero. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Memory has run out: where this is not zero, nothing that was made is complete. */
typedef struct {
    int failed;
} Memory;

static void *taken(Memory *memory, ptrdiff_t count, size_t size) {
    void *found = count > PTRDIFF_MAX / (ptrdiff_t)size ? NULL : malloc((size_t)(count > 0 ? count : 1) * size);
    if (!found) memory->failed = 1;
    return found;
}

#define TAKE(memory, type, count) ((type *)taken(memory, count, sizeof(type)))

/* A list of numbers that grows. */
typedef struct {
    int *at;
    ptrdiff_t size, room;
} Ints;

typedef struct {
    double *at;
    ptrdiff_t size, room;
} Reals;

/* Room for `more` numbers after the last; 0 if there is none. */
static int ints_room(Ints *list, ptrdiff_t more) {
    if (list->size + more <= list->room) return 1;
    ptrdiff_t room = list->size + more + list->room / 2 + 64;
    int *at = realloc(list->at, (size_t)room * sizeof(int));
    if (!at) return 0;
    list->at = at, list->room = room;
    return 1;
}

static int reals_room(Reals *list, ptrdiff_t more) {
    if (list->size + more <= list->room) return 1;
    ptrdiff_t room = list->size + more + list->room / 2 + 64;
    double *at = realloc(list->at, (size_t)room * sizeof(double));
    if (!at) return 0;
    list->at = at, list->room = room;
    return 1;
}

/* Systems of at most so many variables and equations are small: they may be eliminated by nodes (nodes.c). */
enum { SMALL_SYSTEM = 10000 };

static int ascending(const void *a, const void *b) {
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/* The pattern of the lower triangle of A, column by column, counted from 0. */
typedef struct {
    int n;
    const int *begin, *row;
} Pattern;
