/* Small systems: variables are eliminated in nodes of one or two, a variable with the equation paired with it, without
   fronts. The pattern determines all sums, so that each product goes straight to its place. A pair is a pivot of two by
   two as it is, without a choice between pivots; where one is too small, the fronts take over. */

/* Loops over the few rows of a node are slower if the compiler does several numbers at a time. */
#if defined(__GNUC__) && !defined(__clang__)
#define FEW_ROWS __attribute__((optimize("no-tree-vectorize")))
#else
#define FEW_ROWS
#endif

/* Maximum number of products of rows, for each variable: with more, fronts are faster. */
enum { MOST_PRODUCTS = 100 };
/* Smallest pivot of a node, relative to what its elimination multiplies. Solutions are refined, so that few digits
   suffice. */
static const double NODE_THRESHOLD = 1e-13;

typedef struct {
    int count, size, largest; /* nodes, numbers of the factors, most rows of a node */
    int *order;               /* (n,) variables as they are eliminated */
    int *first;               /* (count + 1,) first place of each node */
    int *row_at, *row;        /* (count + 1,), places of the other rows of each node, ascending */
    int *number_at;           /* (count + 1,) where the numbers of each node begin: its pivot, then column by column */
    int *entry_to;            /* (entries of A,) their places among the numbers */
    int *product_to;          /* places of the products of two rows, node by node and column by column */
} Nodes;

static void free_nodes(Nodes *t) {
    if (!t) return;
    free(t->order), free(t->first), free(t->row_at), free(t->row), free(t->number_at);
    free(t->entry_to), free(t->product_to), free(t);
}

/* The order of the nodes: node_of and place (n,) of the variables. */
static void order_nodes(Nodes *t, int n, const int *partner, const Fronts *f, int *node_of, int *place) {
    for (int k = 0; k < n; k++) {
        int v = f->pivots.at[k], is_second = k && partner[v] >= 0 && partner[v] == f->pivots.at[k - 1];
        if (!is_second) t->first[t->count++] = k;
        t->order[k] = v, place[v] = k, node_of[k] = t->count - 1;
    }
    t->first[t->count] = n;
}

/* The later places beside the diagonal of each node: those of node s from begin[s] to begin[s + 1] - 1. */
static int *later_places(const Nodes *t, Pattern a, const int *node_of, const int *place, int *begin, Memory *memory) {
    int *later = NULL;
    memset(begin, 0, (size_t)(t->count + 1) * sizeof(int));
    for (int pass = 0; pass < 2; pass++) {
        for (int j = 0; j < a.n; j++)
            for (int k = a.begin[j]; k < a.begin[j + 1]; k++) {
                int p = place[j], q = place[a.row[k]], low = p < q ? p : q, high = p < q ? q : p;
                if (node_of[low] == node_of[high]) continue;
                if (pass) later[--begin[node_of[low]]] = high;
                else begin[node_of[low]]++;
            }
        if (pass) break;
        for (int s = 0; s < t->count; s++) begin[s + 1] += begin[s];
        later = TAKE(memory, int, begin[t->count]);
        if (!later) break;
    }
    return later;
}

/* The rows of each node: what comes later in A, and the rows of the nodes whose first row it has. Returns the number of
   products. */
static ptrdiff_t find_rows(Nodes *t, const int *later, const int *begin, const int *node_of, int *mark, int *child,
                           Memory *memory) {
    int *sibling = child + t->count;
    ptrdiff_t products = 0, most = MOST_PRODUCTS * (ptrdiff_t)t->first[t->count];
    Ints rows = {0};
    for (int k = 0; k < t->first[t->count]; k++) mark[k] = -1;
    for (int s = 0; s < t->count; s++) child[s] = -1;
    for (int s = 0; s < t->count && products <= most; s++) {
        int start = (int)rows.size, end = t->first[s + 1];
        for (int c = s, is_own = 1; c >= 0; c = is_own ? child[s] : sibling[c], is_own = 0) {
            int size = is_own ? begin[s + 1] - begin[s] : t->row_at[c + 1] - t->row_at[c];
            if (!ints_room(&rows, size)) memory->failed = 1;
            if (memory->failed) break;
            const int *list = is_own ? later + begin[s] : rows.at + t->row_at[c];
            for (int k = 0; k < size; k++)
                if (list[k] >= end && mark[list[k]] != s) mark[list[k]] = s, rows.at[rows.size++] = list[k];
        }
        int size = (int)rows.size - start;
        t->row_at[s] = start, t->row_at[s + 1] = (int)rows.size;
        if (memory->failed) break;
        if (size) {
            qsort(rows.at + start, (size_t)size, sizeof(int), ascending);
            int parent = node_of[rows.at[start]];
            sibling[s] = child[parent], child[parent] = s;
        }
        t->number_at[s] = t->size, t->size += end - t->first[s] == 1 ? 1 + size : 3 + 2 * size;
        if (size > t->largest) t->largest = size;
        products += (ptrdiff_t)size * (size + 1) / 2;
    }
    t->number_at[t->count] = t->size, t->row = rows.at;
    return products;
}

/* Sets `local` to the number of each row of node s within it. */
static void number_rows(const Nodes *t, int s, int *local) {
    for (int k = t->row_at[s]; k < t->row_at[s + 1]; k++) local[t->row[k]] = k - t->row_at[s];
}

/* The place among the numbers of `row` in `column` of node s, whose rows are numbered. */
static int number_of(const Nodes *t, int s, int column, int row, const int *local) {
    int at = t->number_at[s], second = column - t->first[s];
    if (row < t->first[s + 1]) return at + second + row - t->first[s];
    if (t->first[s + 1] - t->first[s] == 1) return at + 1 + local[row];
    return at + 3 + second * (t->row_at[s + 1] - t->row_at[s]) + local[row];
}

static void place_products(Nodes *t, const int *node_of, int *local) {
    int *to = t->product_to;
    for (int s = 0; s < t->count; s++)
        for (int j = t->row_at[s], node = -1; j < t->row_at[s + 1]; j++) {
            if (node_of[t->row[j]] != node) node = node_of[t->row[j]], number_rows(t, node, local);
            for (int i = j; i < t->row_at[s + 1]; i++) *to++ = number_of(t, node, t->row[j], t->row[i], local);
        }
}

/* The places of the entries of A; `list` has room for two numbers of each entry and one of each node. */
static void place_node_entries(Nodes *t, Pattern a, const int *node_of, const int *place, int *local, int *list) {
    int *next = list, *head = next + a.begin[a.n], *column = head + t->count;
    for (int s = 0; s < t->count; s++) head[s] = -1;
    for (int j = 0; j < a.n; j++)
        for (int k = a.begin[j]; k < a.begin[j + 1]; k++) {
            int p = place[j], q = place[a.row[k]], s = node_of[p < q ? p : q];
            column[k] = j, next[k] = head[s], head[s] = k;
        }
    for (int s = 0; s < t->count; s++) {
        number_rows(t, s, local);
        for (int k = head[s]; k >= 0; k = next[k]) {
            int p = place[column[k]], q = place[a.row[k]];
            t->entry_to[k] = number_of(t, s, p < q ? p : q, p < q ? q : p, local);
        }
    }
}

/* The nodes of a pattern with pairs; NULL if they have too many products, or without memory. */
static Nodes *new_nodes(Pattern a, const int *partner, Memory *memory) {
    Fronts fronts; /* of which the order counts */
    find_fronts(a, partner, &fronts, memory);
    Nodes *t = calloc(1, sizeof(Nodes));
    int n = a.n, nz = a.begin[n], is_done = 0, *later = NULL, *work = TAKE(memory, int, 6 * (ptrdiff_t)n + 1);
    int *list = TAKE(memory, int, 2 * (ptrdiff_t)nz + n);
    if (!t || memory->failed) goto end;
    t->order = TAKE(memory, int, n), t->first = TAKE(memory, int, n + 1), t->row_at = TAKE(memory, int, n + 1);
    t->number_at = TAKE(memory, int, n + 1), t->entry_to = TAKE(memory, int, nz);
    if (memory->failed) goto end;
    int *node_of = work, *place = work + n, *local = place + n, *begin = local + n, *child = begin + n + 1;
    order_nodes(t, n, partner, &fronts, node_of, place);
    later = later_places(t, a, node_of, place, begin, memory);
    if (memory->failed) goto end;
    ptrdiff_t products = find_rows(t, later, begin, node_of, local, child, memory);
    if (memory->failed || products > MOST_PRODUCTS * (ptrdiff_t)n) goto end;
    t->product_to = TAKE(memory, int, products);
    if (memory->failed) goto end;
    place_products(t, node_of, local);
    place_node_entries(t, a, node_of, place, local, list);
    is_done = 1;
end:
    free(work), free(list), free(later), free_fronts(&fronts);
    if (is_done) return t;
    free_nodes(t);
    return NULL;
}

/* The numbers of a factorization by nodes: of each node the inverse of its pivot, then its columns of L. */
typedef struct {
    double *l, *x, *column; /* (size,); (n,) in the order of elimination; (2 largest,) columns before their division */
    int negative;
} NodeFactor;

/* The largest size of n numbers. */
static double largest_size(const double *v, int n) {
    double largest = 0.0;
    for (int i = 0; i < n; i++) {
        double size = fabs(v[i]);
        largest = size > largest ? size : largest;
    }
    return largest;
}

/* Eliminates a node of one: 0 if its pivot is too small. */
FEW_ROWS static int eliminate_single(NodeFactor *f, double *v, int rows, double small, const int **to) {
    double d = v[0], *p = v + 1, *w = f->column, *l = f->l;
    const int *at = *to;
    if (!(fabs(d) > small && fabs(d) >= NODE_THRESHOLD * largest_size(p, rows))) return 0;
    double inverse = v[0] = 1.0 / d;
    f->negative += d < 0.0;
    for (int i = 0; i < rows; i++) w[i] = p[i], p[i] *= inverse;
    for (int j = 0; j < rows; j++)
        for (int i = j; i < rows; i++) l[*at++] -= p[i] * w[j];
    *to = at;
    return 1;
}

/* Eliminates a node of two, as `eliminate_single`. */
FEW_ROWS static int eliminate_pair(NodeFactor *f, double *v, int rows, double small, const int **to) {
    double a = v[0], b = v[1], c = v[2], *p = v + 3, *q = p + rows, *w0 = f->column, *w1 = w0 + rows, *l = f->l;
    double of_p = largest_size(p, rows), of_q = largest_size(q, rows), det = a * c - b * b, size = fabs(det);
    const int *at = *to;
    if (!(size > small && size >= NODE_THRESHOLD * (fabs(c) * of_p + fabs(b) * of_q) &&
          size >= NODE_THRESHOLD * (fabs(b) * of_p + fabs(a) * of_q)))
        return 0;
    double inverse = 1.0 / det, aa = c * inverse, bb = -b * inverse, cc = a * inverse;
    v[0] = aa, v[1] = bb, v[2] = cc;
    f->negative += det < 0.0 ? 1 : a + c < 0.0 ? 2 : 0;
    for (int i = 0; i < rows; i++) {
        double x = p[i], y = q[i];
        w0[i] = x, w1[i] = y, p[i] = aa * x + bb * y, q[i] = bb * x + cc * y;
    }
    for (int j = 0; j < rows; j++) {
        double x = w0[j], y = w1[j];
        for (int i = j; i < rows; i++, at++) l[*at] = l[*at] - p[i] * x - q[i] * y;
    }
    *to = at;
    return 1;
}

/* Eliminates node s in the right-hand side. */
FEW_ROWS static void substitute_node(const Nodes *t, const NodeFactor *f, int s) {
    int rows = t->row_at[s + 1] - t->row_at[s];
    const int *row = t->row + t->row_at[s];
    const double *v = f->l + t->number_at[s];
    double *x = f->x, *own = x + t->first[s], y0 = own[0];
    if (t->first[s + 1] - t->first[s] == 1) {
        for (int i = 0; i < rows; i++) x[row[i]] -= v[1 + i] * y0;
        own[0] = y0 * v[0];
        return;
    }
    const double *p = v + 3, *q = p + rows;
    double y1 = own[1];
    for (int i = 0; i < rows; i++) x[row[i]] = x[row[i]] - p[i] * y0 - q[i] * y1;
    own[0] = v[0] * y0 + v[1] * y1, own[1] = v[1] * y0 + v[2] * y1;
}

/* L D L^T of the matrix with these entries by nodes, and D^-1 L^-1 b, unless b is NULL: 0 if a pivot is too small. */
static int factorize_nodes(const Nodes *t, int entries, const double *value, double small, const double *b,
                           NodeFactor *f) {
    const int *to = t->product_to;
    memset(f->l, 0, (size_t)t->size * sizeof(double));
    for (int k = 0; k < entries; k++) f->l[t->entry_to[k]] = value[k];
    for (int k = 0; b && k < t->first[t->count]; k++) f->x[k] = b[t->order[k]];
    f->negative = 0;
    for (int s = 0; s < t->count; s++) {
        int rows = t->row_at[s + 1] - t->row_at[s], is_single = t->first[s + 1] - t->first[s] == 1;
        double *v = f->l + t->number_at[s];
        if (!(is_single ? eliminate_single(f, v, rows, small, &to) : eliminate_pair(f, v, rows, small, &to))) return 0;
        if (b) substitute_node(t, f, s);
    }
    return 1;
}

/* b becomes A^-1 b, as of `solve`. */
FEW_ROWS static void solve_nodes(const Nodes *t, const NodeFactor *f, int has_substituted, double *b) {
    double *x = f->x;
    if (!has_substituted) {
        for (int k = 0; k < t->first[t->count]; k++) x[k] = b[t->order[k]];
        for (int s = 0; s < t->count; s++) substitute_node(t, f, s);
    }
    for (int s = t->count - 1; s >= 0; s--) {
        int rows = t->row_at[s + 1] - t->row_at[s];
        const int *row = t->row + t->row_at[s];
        const double *p = f->l + t->number_at[s];
        double *own = x + t->first[s], sum0 = 0.0, sum1 = 0.0;
        if (t->first[s + 1] - t->first[s] == 1) {
            for (int i = 0; i < rows; i++) sum0 += p[1 + i] * x[row[i]];
            own[0] -= sum0;
            continue;
        }
        for (int i = 0; i < rows; i++) sum0 += p[3 + i] * x[row[i]], sum1 += p[3 + rows + i] * x[row[i]];
        own[0] -= sum0, own[1] -= sum1;
    }
    for (int k = 0; k < t->first[t->count]; k++) b[t->order[k]] = x[k];
}

static void free_node_factor(NodeFactor *f) { free(f->l); }

/* Takes the memory of a factorization; 0 if there is none. */
static int new_node_factor(const Nodes *t, NodeFactor *f) {
    int n = t->first[t->count];
    Memory memory = {0};
    f->l = TAKE(&memory, double, t->size + (ptrdiff_t)n + 2 * t->largest);
    if (memory.failed) return 0;
    f->x = f->l + t->size, f->column = f->x + n;
    return 1;
}
