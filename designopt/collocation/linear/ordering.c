/* Which variables are eliminated together, and in what order: an approximate minimum degree of pairs.

   Amestoy, Davis, Duff, An approximate minimum degree ordering algorithm, SIAM Journal on Matrix Analysis and
   Applications 17 (1996) 886. An equation has no diagonal of its own: with a variable that it determines it is one node
   of the graph, a pivot of two by two (Duff, Gould, Reid, Scott, Turner, The factorization of sparse symmetric
   indefinite matrices, IMA Journal of Numerical Analysis 11 (1991) 181). */

/* An entry counts for a pair from this share of the largest of its equation on. */
static const double COUNTS = 0.1;
/* A node with more neighbours than this many times the root of their number is eliminated at the end. */
static const double DENSE = 10.0;
enum { FEW = 40 };

/* The tree of fronts: what front k eliminates, and the other rows that it has. */
typedef struct {
    Ints pivots, rows;    /* variables */
    Ints pivot_at, row_at; /* where those of a front begin; one more than there are fronts */
    Ints parent;          /* -1 of a root */
} Fronts;

static void free_fronts(Fronts *f) {
    free(f->pivots.at), free(f->rows.at), free(f->pivot_at.at), free(f->row_at.at), free(f->parent.at);
}

/* The first of the last variables that no entry joins: the equations, if there are any. */
static int first_equation(Pattern a) {
    for (int j = a.n - 1; j >= 0; j--)
        for (int k = a.begin[j]; k < a.begin[j + 1]; k++)
            if (a.row[k] != j) return j + 1;
    return 0;
}

/* The entries of equations: those of equation i end at end[i] in `entry` and `variable`, and begin where the equation
   before it ends. */
typedef struct {
    int first, *end, *entry, *variable, *seen;
    const double *value;
} Equations;

/* Largest number of equations that exchange variables with each other: it limits the depth of the recursion. */
enum { MOST_EXCHANGES = 500 };

/* Pairs equation i with a variable, taken from another equation if that finds a different one, and so on for `exchanges`
   equations; 0 if there is none. */
static int pair_by_exchange(const Equations *e, int i, int root, int exchanges, int *partner) {
    int begin = i > e->first ? e->end[i - 1] : 0;
    if (!exchanges) return 0;
    for (int pass = 0; pass < 2; pass++)
        for (int k = begin; k < e->end[i]; k++) {
            int j = e->variable[k];
            if (e->value[e->entry[k]] == 0.0 || (pass && e->seen[j] == root)) continue;
            if (pass) e->seen[j] = root;
            if (pass ? pair_by_exchange(e, partner[j], root, exchanges - 1, partner) : partner[j] < 0) {
                partner[i] = j, partner[j] = i;
                return 1;
            }
        }
    return 0;
}

/* The variable that each equation is paired with, and the other way round; -1 where there is none. Of the variables
   with a large entry those that few equations have, and then the later ones, come first. In `of_nodes` equations without
   one have exchanged variables with others, if the system is small. */
static void pair_up(Pattern a, const double *value, int *partner, int *of_nodes, Memory *memory) {
    int m = first_equation(a), n = a.n;
    int *count = TAKE(memory, int, n + 1), *degree = TAKE(memory, int, n + 1), *where = NULL, *from = NULL;
    for (int i = 0; i < n; i++) partner[i] = -1;
    if (memory->failed) goto end;
    memset(count, 0, (size_t)(n + 1) * sizeof(int));
    memset(degree, 0, (size_t)(n + 1) * sizeof(int));
    for (int j = 0; j < m; j++)
        for (int k = a.begin[j]; k < a.begin[j + 1]; k++)
            if (a.row[k] >= m) count[a.row[k] + 1]++, degree[j]++;
    for (int i = 0; i < n; i++) count[i + 1] += count[i];
    where = TAKE(memory, int, count[n]), from = TAKE(memory, int, count[n]);
    if (memory->failed) goto end;
    for (int j = 0; j < m; j++)
        for (int k = a.begin[j]; k < a.begin[j + 1]; k++)
            if (a.row[k] >= m) where[count[a.row[k]]] = k, from[count[a.row[k]]++] = j;
    for (int i = m; i < n; i++) {
        int begin = i > m ? count[i - 1] : 0, best = -1;
        double largest = 0.0;
        for (int k = begin; k < count[i]; k++) largest = fmax(largest, fabs(value[where[k]]));
        for (int k = begin; k < count[i]; k++) {
            int j = from[k];
            if (partner[j] < 0 && fabs(value[where[k]]) > COUNTS * largest &&
                (best < 0 || degree[j] <= degree[best]))
                best = j;
        }
        if (best >= 0) partner[i] = best, partner[best] = i;
    }
    memcpy(of_nodes, partner, (size_t)n * sizeof(int));
    Equations equations = {m, count, where, from, degree, value};
    for (int j = 0; j < m; j++) degree[j] = -1;
    for (int i = m; n <= SMALL_SYSTEM && i < n; i++)
        if (of_nodes[i] < 0) pair_by_exchange(&equations, i, i, MOST_EXCHANGES, of_nodes);
end:
    free(count), free(degree), free(where), free(from);
}

/* The state of the elimination. A node is a variable of the quotient graph or, once eliminated, an element. Of a
   variable the elements come first in its part of `lists`, then the other variables; of an element there are its
   variables. `weight` counts the nodes that it stands for, 0 of one that is gone; `next` leads through these. */
typedef struct {
    int nodes, alive, stamp, least;
    Ints lists;
    ptrdiff_t *at;
    int *elements, *others, *weight, *degree, *next, *last, *mark, *outside, *eliminated;
    int *head, *before, *after, *hash;
} Graph;

static void take_out(Graph *g, int i) {
    if (g->before[i] >= 0) g->after[g->before[i]] = g->after[i];
    else g->head[g->degree[i]] = g->after[i];
    if (g->after[i] >= 0) g->before[g->after[i]] = g->before[i];
}

static void put_in(Graph *g, int i) {
    int degree = g->degree[i];
    g->before[i] = -1, g->after[i] = g->head[degree];
    if (g->head[degree] >= 0) g->before[g->head[degree]] = i;
    g->head[degree] = i;
    if (degree < g->least) g->least = degree;
}

/* Makes p an element of the variables beside it, which are marked; what elements it had are absorbed. */
static int make_element(Graph *g, int p) {
    ptrdiff_t first = g->lists.size;
    g->mark[p] = ++g->stamp;
    for (int k = -1; k < g->elements[p]; k++) {
        int e = k < 0 ? p : g->lists.at[g->at[p] + k];
        ptrdiff_t begin = k < 0 ? g->at[p] + g->elements[p] : g->at[e];
        if (!ints_room(&g->lists, g->others[e])) return 0;
        for (int q = 0; q < g->others[e]; q++) {
            int i = g->lists.at[begin + q];
            if (!g->weight[i] || g->eliminated[i] || g->mark[i] == g->stamp) continue;
            g->mark[i] = g->stamp;
            g->lists.at[g->lists.size++] = i;
        }
        if (k >= 0) g->weight[e] = 0;
    }
    g->at[p] = first, g->elements[p] = 0, g->others[p] = (int)(g->lists.size - first), g->eliminated[p] = 1;
    return 1;
}

/* Puts node j, and all that it stands for, into i. */
static void join(Graph *g, int i, int j) {
    g->weight[i] += g->weight[j], g->weight[j] = 0;
    g->next[g->last[i]] = j, g->last[i] = g->last[j];
}

/* What each element beside the variables of p has outside of those. */
static void count_outside(Graph *g, const int *of_p, int size) {
    for (int q = 0; q < size; q++)
        for (int k = 0, i = of_p[q]; k < g->elements[i]; k++) {
            int e = g->lists.at[g->at[i] + k];
            if (!g->weight[e]) continue;
            if (g->mark[e] != g->stamp) g->mark[e] = g->stamp, g->outside[e] = g->degree[e];
            g->outside[e] -= g->weight[i];
        }
}

/* The lists of variable i of the new element p, without what has gone, and its approximate degree. */
static void renew(Graph *g, int p, int i, int of_p) {
    int *list = g->lists.at + g->at[i], all = g->elements[i] + g->others[i], elements = 0, others = 0, degree = 0;
    unsigned hash = 0;
    for (int k = 0; k < all; k++) {
        int j = list[k], is_element = k < g->elements[i];
        if (!g->weight[j] || (!is_element && (g->eliminated[j] || g->mark[j] == g->stamp))) continue;
        list[elements + others] = j, hash += (unsigned)j;
        degree += is_element ? g->outside[j] : g->weight[j];
        if (is_element) elements++;
        else others++;
    }
    if (!degree) { /* nothing but p: eliminated with it */
        join(g, p, i);
        return;
    }
    list[elements + others] = list[elements]; /* there is room: what led to p has gone */
    list[elements] = p;
    g->elements[i] = elements + 1, g->others[i] = others;
    int most = g->degree[i] + of_p - g->weight[i];
    degree += of_p - g->weight[i];
    g->degree[i] = degree < most ? degree : most;
    g->hash[i] = (int)(hash % (unsigned)g->nodes);
}

static int same(Graph *g, int i, int j) {
    if (g->elements[i] != g->elements[j] || g->others[i] != g->others[j]) return 0;
    int all = g->elements[i] + g->others[i], stamp = ++g->stamp;
    for (int k = 0; k < all; k++) g->mark[g->lists.at[g->at[i] + k]] = stamp;
    for (int k = 0; k < all; k++)
        if (g->mark[g->lists.at[g->at[j] + k]] != stamp) return 0;
    return 1;
}

/* Joins variables of an element that cannot be distinguished. `outside` is free: it holds the first of each hash. */
static void join_twins(Graph *g, const int *of_p, int size) {
    for (int q = 0; q < size; q++) g->outside[g->hash[of_p[q]]] = -1;
    for (int q = 0; q < size; q++) {
        int j = of_p[q], *first = &g->outside[g->hash[j]], i = g->weight[j] ? *first : -1;
        if (!g->weight[j]) continue;
        while (i >= 0 && !same(g, i, j)) i = g->after[i];
        if (i >= 0) g->degree[i] -= g->weight[j], join(g, i, j);
        else g->after[j] = *first, *first = j;
    }
}

/* Adds the variables that node i stands for to a list. */
static int expand(const Graph *g, int i, const int *node, const int *partner, Ints *list) {
    for (int j = i; j >= 0; j = g->next[j]) {
        int v = node[j];
        if (!ints_room(list, 2)) return 0;
        list->at[list->size++] = v;
        if (partner[v] >= 0) list->at[list->size++] = partner[v];
    }
    return 1;
}

/* Eliminates all nodes in turn; front k is that of the node made[k]. */
static int eliminate(Graph *g, const int *node, const int *partner, Fronts *f, int *made) {
    int *front = g->before; /* of an element; it is no longer in a list of degrees */
    while (g->alive > 0) {
        while (g->head[g->least] < 0) g->least++;
        int p = g->head[g->least], weight = 0, kept = 0;
        take_out(g, p);
        /* fronts of the elements that p absorbs are below that of p */
        for (int k = 0; k < g->elements[p]; k++) {
            int e = g->lists.at[g->at[p] + k];
            if (g->weight[e]) f->parent.at[front[e]] = (int)f->parent.size;
        }
        if (!make_element(g, p)) return 0;
        int *of_p = g->lists.at + g->at[p], size = g->others[p];
        for (int q = 0; q < size; q++) weight += g->weight[of_p[q]], take_out(g, of_p[q]);
        count_outside(g, of_p, size);
        for (int q = 0; q < size; q++) /* an element without anything outside of p is absorbed too */
            for (int k = 0; k < g->elements[of_p[q]]; k++) {
                int e = g->lists.at[g->at[of_p[q]] + k];
                if (g->weight[e] && !g->outside[e]) g->weight[e] = 0, f->parent.at[front[e]] = (int)f->parent.size;
            }
        for (int q = 0; q < size; q++) renew(g, p, of_p[q], weight);
        for (int q = 0; q < size; q++)
            if (g->weight[of_p[q]]) of_p[kept++] = of_p[q];
        g->others[p] = size = kept;
        join_twins(g, of_p, size);
        g->alive -= g->weight[p], g->degree[p] = 0, g->least = 0;
        for (int q = 0; q < size; q++) {
            int i = of_p[q];
            if (!g->weight[i]) continue;
            g->degree[p] += g->weight[i];
            if (g->degree[i] > g->alive - g->weight[i]) g->degree[i] = g->alive - g->weight[i];
        }
        for (int q = 0; q < size; q++)
            if (g->weight[of_p[q]]) put_in(g, of_p[q]);
        front[p] = (int)f->parent.size, made[f->parent.size] = p;
        if (!ints_room(&f->parent, 1) || !ints_room(&f->pivot_at, 1) || !ints_room(&f->row_at, 1)) return 0;
        f->parent.at[f->parent.size++] = -1;
        f->pivot_at.at[f->pivot_at.size++] = (int)f->pivots.size;
        f->row_at.at[f->row_at.size++] = (int)f->rows.size;
        if (!expand(g, p, node, partner, &f->pivots)) return 0;
        for (int q = 0; q < size; q++)
            if (g->weight[of_p[q]] && !expand(g, of_p[q], node, partner, &f->rows)) return 0;
    }
    return 1;
}
