/* The numerical factorization, front after front, and the solution with it. */

/* Memory that is read backwards or at random is asked for before it is needed: by so many entries of the matrix, by lines
   of the cache with so many numbers. An address without memory does nothing. */
enum { AHEAD = 24, LINE = 8 };
/* The memory of a front with at most so many rows is cleared as a whole, of larger ones only what is used. */
enum { SMALL_FRONT = 24 };

static inline void prefetch(uintptr_t address) {
#ifdef __GNUC__
    __builtin_prefetch((const void *)address);
#endif
}

/* What a front leaves: `rest` rows of which the first `delayed` are pivots that did not hold. `ld` is the leading
   dimension where they stay in the front's memory, 0 on the stack: there are its columns, each from its diagonal on. */
typedef struct {
    int front, rest, delayed, ld;
} Left;

typedef struct {
    Reals l;       /* columns of L, front after front, each from its diagonal on */
    Ints index;    /* (m,) of each front: places in the order of elimination */
    Reals inverse; /* (2 pivots,) of each */
    ptrdiff_t *l_at, *index_at, *inverse_at;
    int *m, *pivots;
    Reals work[2];     /* a front with its panel, in turn: a parent that comes next finds its child there */
    Reals stack;       /* what other fronts leave to their parents */
    Reals x;           /* (n,) in the order of elimination, then the rows of a front */
    Ints waiting, to;  /* delayed rows of what is left; where a child goes */
    Left *lefts;
    NodeFactor nodes;
    int is_by_nodes; /* whether to factorize by nodes, if the system is small, until a pivot is too small */
    int fronts, negative, delayed, largest;
} Factor;

/* Where column k of a front with m rows begins: its diagonal. */
static ptrdiff_t column_at(ptrdiff_t m, ptrdiff_t k) { return k * m - k * (k - 1) / 2; }

static void free_factor(Factor *t) {
    if (!t) return;
    void *all[] = {t->l.at,     t->index.at, t->inverse.at, t->l_at,  t->work[0].at, t->work[1].at, t->stack.at,
                   t->x.at,     t->to.at,    t->waiting.at, t->lefts, t->m};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) free(all[k]);
    free_node_factor(&t->nodes), free(t);
}

static Factor *new_factor(const Analysis *a) {
    Memory all = {0}, *memory = &all;
    Factor *t = calloc(1, sizeof(Factor));
    if (!t) return NULL;
    t->fronts = a->fronts;
    t->l_at = TAKE(memory, ptrdiff_t, 3 * (ptrdiff_t)a->fronts + 3);
    t->m = TAKE(memory, int, 2 * (ptrdiff_t)a->fronts), t->lefts = TAKE(memory, Left, a->fronts);
    int has_room = !a->nodes || new_node_factor(a->nodes, &t->nodes);
    if (memory->failed || !has_room || !reals_room(&t->l, a->factor + LANES)) {
        free_factor(t);
        return NULL;
    }
    t->index_at = t->l_at + a->fronts + 1, t->inverse_at = t->index_at + a->fronts + 1, t->pivots = t->m + a->fronts;
    return t;
}

/* Adds what front c has left, `from` its first diagonal, to the front `f` (ld, m) of its parent, where all `delayed`
   variables stand behind the parent's own pivots and those of this child, with `names`, begin at `delayed_at`.
   `to` (2 rest,) is for places in the parent's front and for ends of runs of them. */
static void add_child(const Analysis *a, Left c, const double *from, double *f, ptrdiff_t ld, int delayed_at,
                      const int *names, int delayed, int *index, int *to) {
    const int *in_parent = a->in_parent + a->row_at[c.front];
    int pivots = a->first[a->parent[c.front] + 1] - a->first[a->parent[c.front]], *end = to + c.rest;
    for (int k = 0; k < c.delayed; k++) to[k] = delayed_at + k, index[delayed_at + k] = names[k];
    for (int k = c.delayed; k < c.rest; k++) {
        int row = in_parent[k - c.delayed];
        to[k] = row < pivots ? row : row + delayed;
    }
    int is_rising = 1; /* then all numbers go below the diagonal */
    for (int k = c.rest - 1; k >= 0; k--) {
        int has_next = k + 1 < c.rest;
        end[k] = has_next && to[k + 1] == to[k] + 1 ? end[k + 1] : k + 1;
        is_rising &= !has_next || to[k + 1] > to[k];
    }
    for (int k = 0; k < c.rest; from += c.ld ? c.ld + 1 : c.rest - k, k++) {
        const double *column = from - k;
        if (is_rising) {
            double *own = f + to[k] * ld;
            for (int i = k; i < c.rest;) {
                double *at = own + to[i] - i;
                int last = end[i];
                for (; i + 3 < last; i += 4) *(Four *)(at + i) += *(const Four *)(column + i);
                for (; i < last; i++) at[i] += column[i];
            }
            continue;
        }
        for (int i = k; i < c.rest; i++) {
            int p = to[i], q = to[k];
            if (p >= q) f[p + q * ld] += column[i];
            else f[q + p * ld] += column[i];
        }
    }
}

/* Pivots below this share of their column are too small; larger shares, where digits are lost, fill the factors. */
static const double FIRST_THRESHOLD = 1e-8;

enum { DONE = 0, SINGULAR = -7, NO_MEMORY = -1 };

/* Eliminates the pivots of front s in the right-hand side x; y is memory for its rows. */
static void substitute(const Factor *t, int s, double *x, double *y) {
    int m = t->m[s], pivots = t->pivots[s], k = 0;
    const double *l = t->l.at + t->l_at[s], *d = t->inverse.at + t->inverse_at[s];
    const int *index = t->index.at + t->index_at[s];
    for (int i = 0; i < m; i++) y[i] = x[index[i]];
    for (; k + 3 < pivots; k += 4) { /* four columns at once */
        const double *c0 = l + column_at(m, k) - k, *c1 = l + column_at(m, k + 1) - k - 1;
        const double *c2 = l + column_at(m, k + 2) - k - 2, *c3 = l + column_at(m, k + 3) - k - 3;
        double y0 = y[k], y1 = y[k + 1] - c0[k + 1] * y0;
        double y2 = y[k + 2] - c0[k + 2] * y0 - c1[k + 2] * y1;
        double y3 = y[k + 3] - c0[k + 3] * y0 - c1[k + 3] * y1 - c2[k + 3] * y2;
        y[k + 1] = y1, y[k + 2] = y2, y[k + 3] = y3;
        int i = k + 4;
        for (; i + LANES <= m; i += LANES)
            AT(y + i) = AT(y + i) - AT(c0 + i) * y0 - AT(c1 + i) * y1 - AT(c2 + i) * y2 - AT(c3 + i) * y3;
        for (; i < m; i++) y[i] = y[i] - c0[i] * y0 - c1[i] * y1 - c2[i] * y2 - c3[i] * y3;
    }
    for (; k < pivots; k++) subtract_one(y + k + 1, l + column_at(m, k) + 1, y[k], m - k - 1);
    for (k = pivots; k < m; k++) x[index[k]] = y[k];
    for (k = 0; k < pivots; k++) {
        double v = y[k] * d[2 * k];
        if (d[2 * k + 1] != 0.0) v += y[k + 1] * d[2 * k + 1];
        if (k && d[2 * k - 1] != 0.0) v += y[k - 1] * d[2 * k - 1];
        x[index[k]] = v;
    }
}

/* Room for a front of m rows, its panel and what it leaves in L; 0 if there is none. */
static int has_room(const Analysis *a, Factor *t, Reals *work, int m, int own) {
    int ld = whole_lanes(m);
    ptrdiff_t area = ld * (ptrdiff_t)(m + TILE) + PANEL * (ptrdiff_t)(ld + TILE) + LINE;
    return reals_room(&t->l, column_at(m, own) + LANES) && reals_room(work, area) && reals_room(&t->x, a->n + m) &&
           ints_room(&t->index, m) && ints_room(&t->to, 2 * (ptrdiff_t)m) &&
           reals_room(&t->inverse, 2 * (ptrdiff_t)own) && ints_room(&t->waiting, own);
}

/* The front with m rows, of which `own` may be eliminated: its memory, set to zero where it is used. */
static Front new_front(Reals *work, int m, int own) {
    double *f = work->at + (-((uintptr_t)work->at / sizeof(double)) & (LINE - 1)); /* a line of the cache */
    ptrdiff_t ld = whole_lanes(m);
    Front front = {.f = f, .m = m, .ld = (int)ld, .own = own, .w = f + ld * (m + TILE)};
    if (m <= SMALL_FRONT) memset(f, 0, (size_t)(ld * (m + TILE)) * sizeof(double));
    for (int k = 0; m > SMALL_FRONT && k < m + TILE; k++) { /* columns of a tile begin with the row of its first one */
        int from = lanes_of(k > TILE ? k - TILE : 0);
        if (from < ld) memset(f + k * ld + from, 0, (size_t)(ld - from) * sizeof(double));
    }
    for (int k = 0; k < PANEL && k < own; k++) memset(front.w + k * (ld + TILE) + ld, 0, TILE * sizeof(double));
    return front;
}

/* Copies columns from `begin` to `end`, each from its diagonal on, one behind the other; up to LANES numbers more are
   written behind the last. */
static void copy_columns(double *to, const Front *front, int begin, int end) {
    for (int k = begin; k < end; to += front->m - k, k++) {
        const double *column = front->f + k * (ptrdiff_t)front->ld + k;
        for (int i = 0; i < front->m - k; i += LANES) AT(to + i) = AT(column + i);
    }
}

/* Stores the columns of L, and what is left of the front on the stack unless its parent is next; 0 without memory. */
static int store_front(const Analysis *a, Factor *t, int s, const Front *front, Left *left) {
    int m = front->m, done = front->done;
    t->negative += front->negative, t->delayed += front->own - done;
    if (m > t->largest) t->largest = m;
    t->l_at[s] = t->l.size, t->index_at[s] = t->index.size, t->inverse_at[s] = t->inverse.size;
    t->m[s] = m, t->pivots[s] = done;
    copy_columns(t->l.at + t->l.size, front, 0, done), t->l.size += column_at(m, done);
    t->index.size += m, t->inverse.size += 2 * (ptrdiff_t)done;
    *left = (Left){s, m - done, front->own - done, a->parent[s] == s + 1 ? front->ld : 0};
    for (int k = done; k < front->own; k++) t->waiting.at[t->waiting.size++] = front->index[k];
    if (left->ld || a->parent[s] < 0) return 1;
    ptrdiff_t size = column_at(left->rest, left->rest);
    if (!reals_room(&t->stack, size + LANES)) return 0;
    copy_columns(t->stack.at + t->stack.size, front, done, m), t->stack.size += size;
    return 1;
}

/* L D L^T of the matrix with these entries. With a right-hand side `b` (or NULL), `t->x` becomes D^-1 L^-1 b: a front is
   substituted while it is in the cache. */
static int factorize(const Analysis *a, const double *value, double threshold, double small, const double *b,
                     Factor *t) {
    int count = 0; /* of those that wait for their parents */
    const double *before = NULL; /* what the last front has left */
    t->l.size = t->index.size = t->inverse.size = t->stack.size = t->waiting.size = 0;
    t->negative = t->delayed = t->largest = 0;
    t->is_by_nodes = t->is_by_nodes && a->nodes && threshold <= FIRST_THRESHOLD &&
                     factorize_nodes(a->nodes, a->begin[a->n], value, small, b, &t->nodes);
    if (t->is_by_nodes) {
        t->negative = t->nodes.negative;
        return DONE;
    }
    if (!reals_room(&t->x, a->n + a->largest)) return NO_MEMORY;
    for (int k = 0; b && k < a->n; k++) t->x.at[k] = b[a->order[k]];
    for (int s = 0; s < a->fronts; s++) {
        int pivots = a->first[s + 1] - a->first[s], rows = a->row_at[s + 1] - a->row_at[s], delayed = 0, first = count;
        for (; first > 0 && a->parent[t->lefts[first - 1].front] == s; first--) {
            Left c = t->lefts[first - 1];
            delayed += c.delayed, t->stack.size -= c.ld ? 0 : column_at(c.rest, c.rest);
        }
        int own = pivots + delayed, m = own + rows, at = pivots;
        t->waiting.size -= delayed;
        if (!has_room(a, t, &t->work[s % 2], m, own)) return NO_MEMORY;
        Front front = new_front(&t->work[s % 2], m, own);
        front.index = t->index.at + t->index.size, front.inverse = t->inverse.at + t->inverse.size;
        front.threshold = threshold, front.small = small;
        for (int k = 0; k < pivots; k++) front.index[k] = a->first[s] + k;
        for (int k = 0; k < rows; k++) front.index[own + k] = a->row[a->row_at[s] + k];
        int ld = whole_lanes(pivots + rows); /* without delayed variables */
        for (int k = a->entry_at[s]; k < a->entry_at[s + 1]; k++) {
            ptrdiff_t to = a->entry_to[k];
            if (delayed) to = (to % ld < pivots ? to % ld : to % ld + delayed) + to / ld * front.ld;
            if (k + AHEAD < a->entry_at[a->fronts]) prefetch((uintptr_t)(value + a->entry[k + AHEAD]));
            front.f[to] += value[a->entry[k]];
        }
        const double *stack = t->stack.at + t->stack.size;
        const int *names = t->waiting.at + t->waiting.size;
        for (int k = first; k < count; k++) {
            Left c = t->lefts[k];
            add_child(a, c, c.ld ? before : stack, front.f, front.ld, at, names, delayed, front.index, t->to.at);
            at += c.delayed, names += c.delayed, stack += c.ld ? 0 : column_at(c.rest, c.rest);
        }
        count = first;
        eliminate_front(&front);
        if (a->parent[s] < 0 && front.done < own && !eliminate_rest(&front)) return SINGULAR;
        if (!store_front(a, t, s, &front, &t->lefts[count++])) return NO_MEMORY;
        before = front.f + front.done * (ptrdiff_t)(front.ld + 1);
        if (b) substitute(t, s, t->x.at, t->x.at + a->n);
    }
    return DONE;
}

/* The inner products of a and b with y, of length n. The first two numbers of y are passed by value: just stored, they
   are not yet in the memory that several are read from at once. */
static inline void products(const double *a, const double *b, const double *y, double y0, double y1, int n,
                            double *with_a, double *with_b) {
    Four s = {0.0}, t = {0.0};
    int i = 0;
    if (n > 3) {
        Four u = {y0, y1, y[2], y[3]};
        s += *(const Four *)a * u, t += *(const Four *)b * u, i = 4;
    }
    for (; i + 3 < n; i += 4) {
        Four u = *(const Four *)(y + i);
        s += *(const Four *)(a + i) * u, t += *(const Four *)(b + i) * u;
    }
    double of_a = (s[0] + s[1]) + (s[2] + s[3]), of_b = (t[0] + t[1]) + (t[2] + t[3]);
    for (; i < n; i++) of_a += a[i] * y[i], of_b += b[i] * y[i];
    *with_a = of_a, *with_b = of_b;
}

/* b becomes A^-1 b, or what belongs to the right-hand side of the factorization if that `has_substituted` it. */
static void solve(const Analysis *a, Factor *t, int has_substituted, double *b) {
    if (t->is_by_nodes) {
        solve_nodes(a->nodes, &t->nodes, has_substituted, b);
        return;
    }
    double *x = t->x.at, *y = x + a->n;
    for (int k = 0; !has_substituted && k < a->n; k++) x[k] = b[a->order[k]];
    for (int s = 0; !has_substituted && s < t->fronts; s++) substitute(t, s, x, y);
    for (int s = t->fronts - 1; s >= 0; s--) {
        int m = t->m[s], pivots = t->pivots[s];
        const double *l = t->l.at + t->l_at[s];
        const int *index = t->index.at + t->index_at[s];
        for (int k = 0; k < m; k++) y[k] = x[index[k]];
        int k = pivots - 1;
        double y0 = k + 1 < m ? y[k + 1] : 0.0, y1 = k + 2 < m ? y[k + 2] : 0.0;
        for (; k > 0; k -= 2) { /* two columns at once */
            const double *c1 = l + column_at(m, k), *c0 = l + column_at(m, k - 1);
            double sum0, sum1;
            uintptr_t size = (uintptr_t)(m - k + LINE) * sizeof(double), ahead = (uintptr_t)c0 - 6 * size;
            for (uintptr_t line = ahead; line < ahead + 2 * size; line += LINE * sizeof(double)) prefetch(line);
            products(c0 + 2, c1 + 1, y + k + 1, y0, y1, m - k - 1, &sum0, &sum1);
            y[k] = y1 = y[k] - sum1;
            y[k - 1] = y0 = y[k - 1] - (sum0 + c0[1] * y1);
            x[index[k]] = y1, x[index[k - 1]] = y0;
        }
        if (!k) {
            double sum, same;
            products(l + 1, l + 1, y + 1, y0, y1, m - 1, &sum, &same);
            x[index[0]] = y[0] - sum;
        }
    }
    for (int k = 0; k < a->n; k++) b[a->order[k]] = x[k];
}
