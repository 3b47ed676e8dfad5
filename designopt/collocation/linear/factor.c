/* The numerical factorization, front after front, and the solution with it. */

typedef struct {
    Reals l;       /* columns of L, front after front, each from its diagonal on */
    Ints index;    /* (m,) of each front: places in the order of elimination */
    Reals inverse; /* (2 pivots,) of each */
    ptrdiff_t *l_at, *index_at, *inverse_at;
    int *m, *pivots;
    Reals stack, work; /* what fronts leave to their parents; panels */
    Ints waiting;      /* rows of what is on the stack */
    int fronts, negative, delayed, largest;
    double *x;         /* (n,) in the order of elimination, (largest,) of a front */
} Factor;

/* Where column k of a front with m rows begins: its diagonal. */
static ptrdiff_t column_at(ptrdiff_t m, ptrdiff_t k) { return k * m - k * (k - 1) / 2; }

static void free_factor(Factor *t) {
    if (!t) return;
    void *all[] = {t->l.at, t->index.at, t->inverse.at, t->l_at, t->stack.at, t->work.at, t->waiting.at, t->m, t->x};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) free(all[k]);
    free(t);
}

static Factor *new_factor(const Analysis *a) {
    Memory all = {0}, *memory = &all;
    Factor *t = calloc(1, sizeof(Factor));
    if (!t) return NULL;
    t->fronts = a->fronts;
    t->l_at = TAKE(memory, ptrdiff_t, 3 * (ptrdiff_t)a->fronts + 3);
    t->m = TAKE(memory, int, 2 * (ptrdiff_t)a->fronts);
    if (memory->failed || !reals_room(&t->l, a->factor + (ptrdiff_t)a->largest * a->largest)) {
        free_factor(t);
        return NULL;
    }
    t->index_at = t->l_at + a->fronts + 1, t->inverse_at = t->index_at + a->fronts + 1, t->pivots = t->m + a->fronts;
    return t;
}

/* What a front leaves: `rest` rows of which the first `delayed` are pivots that did not hold. */
typedef struct {
    int front, rest, delayed;
} Left;

/* Adds what front c has left, `from` (rest, rest), to the front `f` (m, m) of its parent, where all `delayed` variables
   stand behind the parent's own pivots and those of this child, with `names`, begin at `delayed_at`. */
static void add_child(const Analysis *a, Left c, const double *from, double *f, ptrdiff_t m, int delayed_at,
                      const int *names, int delayed, int *index, int *to) {
    const int *in_parent = a->in_parent + a->row_at[c.front];
    int pivots = a->first[a->parent[c.front] + 1] - a->first[a->parent[c.front]];
    for (int k = 0; k < c.delayed; k++) to[k] = delayed_at + k, index[delayed_at + k] = names[k];
    for (int k = c.delayed; k < c.rest; k++) {
        int row = in_parent[k - c.delayed];
        to[k] = row < pivots ? row : row + delayed;
    }
    int is_rising = 1; /* then all numbers go below the diagonal */
    for (int k = 1; k < c.rest; k++) is_rising &= to[k] > to[k - 1];
    for (int k = 0; k < c.rest; k++) {
        const double *column = from + k * (ptrdiff_t)c.rest;
        if (is_rising) {
            double *own = f + to[k] * m;
            for (int i = k; i < c.rest; i++) own[to[i]] += column[i];
            continue;
        }
        for (int i = k; i < c.rest; i++) {
            int p = to[i], q = to[k];
            if (p >= q) f[p + q * m] += column[i];
            else f[q + p * m] += column[i];
        }
    }
}

enum { DONE = 0, SINGULAR = -7, NO_MEMORY = -1 };

/* L D L^T of the matrix with these entries. */
static int factorize(const Analysis *a, const double *value, double threshold, double small, Factor *t) {
    Ints lefts = {0}; /* three numbers of each on the stack */
    int status = NO_MEMORY, *to = NULL, room = 0;
    t->l.size = t->index.size = t->inverse.size = t->stack.size = t->waiting.size = 0;
    t->negative = t->delayed = t->largest = 0;
    for (int s = 0; s < a->fronts; s++) {
        int pivots = a->first[s + 1] - a->first[s], rows = a->row_at[s + 1] - a->row_at[s], delayed = 0;
        ptrdiff_t children = lefts.size, below = t->stack.size, waiting = t->waiting.size;
        while (children > 0 && a->parent[lefts.at[children - 3]] == s) {
            int rest = lefts.at[children - 2];
            delayed += lefts.at[children - 1], children -= 3;
            below -= (ptrdiff_t)rest * rest, waiting -= lefts.at[children + 2];
        }
        int own = pivots + delayed, m = own + rows;
        if (!reals_room(&t->l, (ptrdiff_t)m * m) || !reals_room(&t->work, (ptrdiff_t)m * PANEL) ||
            !ints_room(&t->index, m) || !reals_room(&t->inverse, 2 * (ptrdiff_t)own))
            goto end;
        if (m > room) {
            free(to);
            to = malloc((size_t)(room = 2 * m) * sizeof(int));
            if (!to) goto end;
        }
        double *f = t->l.at + t->l.size;
        int *index = t->index.at + t->index.size;
        memset(f, 0, (size_t)m * (size_t)m * sizeof(double));
        for (int k = 0; k < pivots; k++) index[k] = a->first[s] + k;
        for (int k = 0; k < rows; k++) index[own + k] = a->row[a->row_at[s] + k];
        for (int k = a->entry_at[s]; k < a->entry_at[s + 1]; k++) {
            int i = a->entry_row[k], j = a->entry_col[k];
            f[(i < pivots ? i : i + delayed) + j * (ptrdiff_t)m] += value[a->entry[k]];
        }
        int at = pivots;
        ptrdiff_t stack = below, names = waiting;
        for (ptrdiff_t k = children; k < lefts.size; k += 3) {
            Left c = {lefts.at[k], lefts.at[k + 1], lefts.at[k + 2]};
            add_child(a, c, t->stack.at + stack, f, m, at, t->waiting.at + names, delayed, index, to);
            at += c.delayed, stack += (ptrdiff_t)c.rest * c.rest, names += c.delayed;
        }
        lefts.size = children, t->stack.size = below, t->waiting.size = waiting;
        Front front = {f, m, own, index, t->inverse.at + t->inverse.size, t->work.at, threshold, small, 0, 0};
        eliminate_front(&front);
        if (a->parent[s] < 0 && front.done < own && !eliminate_rest(&front)) {
            status = SINGULAR;
            goto end;
        }
        int done = front.done, rest = m - done;
        t->negative += front.negative, t->delayed += own - done;
        if (m > t->largest) t->largest = m;
        t->l_at[s] = t->l.size, t->index_at[s] = t->index.size, t->inverse_at[s] = t->inverse.size;
        t->m[s] = m, t->pivots[s] = done;
        for (ptrdiff_t k = 1; k < done; k++)
            memmove(f + column_at(m, k), f + k * m + k, (size_t)(m - k) * sizeof(double));
        t->l.size += column_at(m, done), t->index.size += m, t->inverse.size += 2 * (ptrdiff_t)done;
        if (a->parent[s] < 0) continue;
        if (!reals_room(&t->stack, (ptrdiff_t)rest * rest) || !ints_room(&t->waiting, own - done) ||
            !ints_room(&lefts, 3))
            goto end;
        double *left = t->stack.at + t->stack.size;
        for (int k = 0; k < rest; k++)
            memcpy(left + k * (ptrdiff_t)rest + k, f + (done + k) * (ptrdiff_t)m + done + k,
                   (size_t)(rest - k) * sizeof(double));
        t->stack.size += (ptrdiff_t)rest * rest;
        for (int k = done; k < own; k++) t->waiting.at[t->waiting.size++] = index[k];
        lefts.at[lefts.size++] = s, lefts.at[lefts.size++] = rest, lefts.at[lefts.size++] = own - done;
    }
    free(t->x);
    t->x = malloc((size_t)(a->n + t->largest + 1) * sizeof(double));
    status = t->x ? DONE : NO_MEMORY;
end:
    free(lefts.at), free(to);
    return status;
}

/* The inner products of a and b with y, of length n. */
static inline void products(const double *a, const double *b, const double *y, int n, double *with_a, double *with_b) {
    Four s = {0.0}, t = {0.0};
    int i = 0;
    for (; i + 3 < n; i += 4) {
        Four u = *(const Four *)(y + i);
        s += *(const Four *)(a + i) * u, t += *(const Four *)(b + i) * u;
    }
    double of_a = (s[0] + s[1]) + (s[2] + s[3]), of_b = (t[0] + t[1]) + (t[2] + t[3]);
    for (; i < n; i++) of_a += a[i] * y[i], of_b += b[i] * y[i];
    *with_a = of_a, *with_b = of_b;
}

/* x becomes A^-1 x. */
FOR_EACH_PROCESSOR
static void solve(const Analysis *a, Factor *t, double *b) {
    double *x = t->x, *y = x + a->n;
    for (int k = 0; k < a->n; k++) x[k] = b[a->order[k]];
    for (int s = 0; s < t->fronts; s++) {
        int m = t->m[s], pivots = t->pivots[s];
        const double *l = t->l.at + t->l_at[s], *d = t->inverse.at + t->inverse_at[s];
        const int *index = t->index.at + t->index_at[s];
        for (int k = 0; k < m; k++) y[k] = x[index[k]];
        int k = 0;
        for (; k + 1 < pivots; k += 2) { /* two columns at once */
            const double *c0 = l + column_at(m, k), *c1 = l + column_at(m, k + 1);
            y[k + 1] -= c0[1] * y[k];
            subtract(y + k + 2, c0 + 2, y[k], c1 + 1, y[k + 1], m - k - 2);
        }
        for (; k < pivots; k++) {
            const double *c = l + column_at(m, k) + 1;
            subtract_one(y + k + 1, c, y[k], m - k - 1);
        }
        for (k = pivots; k < m; k++) x[index[k]] = y[k];
        for (k = 0; k < pivots; k++) {
            double v = y[k] * d[2 * k];
            if (d[2 * k + 1] != 0.0) v += y[k + 1] * d[2 * k + 1];
            if (k && d[2 * k - 1] != 0.0) v += y[k - 1] * d[2 * k - 1];
            x[index[k]] = v;
        }
    }
    for (int s = t->fronts - 1; s >= 0; s--) {
        int m = t->m[s], pivots = t->pivots[s];
        const double *l = t->l.at + t->l_at[s];
        const int *index = t->index.at + t->index_at[s];
        for (int k = 0; k < m; k++) y[k] = x[index[k]];
        int k = pivots - 1;
        for (; k > 0; k -= 2) { /* two columns at once */
            const double *c1 = l + column_at(m, k), *c0 = l + column_at(m, k - 1);
            double sum0, sum1;
            products(c0 + 2, c1 + 1, y + k + 1, m - k - 1, &sum0, &sum1);
            y[k] -= sum1;
            y[k - 1] -= sum0 + c0[1] * y[k];
            x[index[k]] = y[k], x[index[k - 1]] = y[k - 1];
        }
        if (!k) {
            double sum, same;
            products(l + 1, l + 1, y + 1, m - 1, &sum, &same);
            x[index[0]] = y[0] - sum;
        }
    }
    for (int k = 0; k < a->n; k++) b[a->order[k]] = x[k];
}
