/* The symbolic factorization: fronts joined where that saves work, their order, and where every number goes. */

/* A front is joined with its parent while both eliminate fewer variables than this, or where few zeros are added. */
enum { SMALL = 16 };
static const double ZEROS = 0.1;
/* Largest number of rows of a front, so that positions in its memory are integers: it would need 12 GB. */
enum { MOST_ROWS = 40000 };

typedef struct Analysis {
    int n, fronts, largest; /* of a front: rows without what may be delayed */
    int *partner, *of_nodes;    /* pairs of fronts and of nodes */
    int *order;                 /* variables as they are eliminated */
    int *first;                 /* the first place of a front; one more than there are fronts */
    int *row_at, *row;          /* places of the other rows of a front */
    int *in_parent;             /* where these rows are in the parent's front */
    int *parent;
    int *entry_at, *entry;      /* entries of A in a front: numbers */
    int *entry_to;              /* and where they are there, in memory without delayed variables */
    ptrdiff_t factor;           /* numbers of L, without delays */
    int *begin, *column_rows;   /* the pattern that it is of */
    Nodes *nodes;               /* of small systems, or NULL */
    int users;
    struct Analysis *next;
} Analysis;

static void free_analysis(Analysis *t) {
    if (!t) return;
    int *all[] = {t->partner, t->order,    t->first, t->row_at,   t->row,   t->in_parent,
                  t->parent,  t->entry_at, t->entry, t->entry_to, t->begin, t->column_rows};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) free(all[k]);
    free_nodes(t->nodes), free(t);
}

/* Takes rows out of fronts that nothing joins to their pivots: the order is that of pairs, where an equation brings its
   variable with it. Parents follow from the rows that stay. */
static void reduce_rows(Pattern a, Fronts *f, Memory *memory) {
    int count = (int)f->parent.size, *front_of = TAKE(memory, int, a.n), *mark = TAKE(memory, int, a.n);
    int *begin = TAKE(memory, int, count + 1), *later = NULL, *child = TAKE(memory, int, 2 * (ptrdiff_t)count);
    Ints rows = {0};
    if (memory->failed) goto end;
    for (int k = 0; k < count; k++)
        for (int q = f->pivot_at.at[k]; q < f->pivot_at.at[k + 1]; q++) front_of[f->pivots.at[q]] = k;
    memset(begin, 0, (size_t)(count + 1) * sizeof(int));
    for (int pass = 0; pass < 2; pass++) { /* variables beside the pivots of a front that are eliminated later */
        for (int j = 0; j < a.n; j++)
            for (int k = a.begin[j]; k < a.begin[j + 1]; k++) {
                int i = a.row[k], p = front_of[i], q = front_of[j];
                if (p == q) continue;
                if (pass) later[--begin[p < q ? p : q]] = p < q ? j : i;
                else begin[p < q ? p : q]++;
            }
        if (pass) break;
        for (int k = 0; k < count; k++) begin[k + 1] += begin[k];
        later = TAKE(memory, int, begin[count]);
        if (memory->failed) goto end;
    }
    int *sibling = child + count;
    for (int k = 0; k < count; k++) child[k] = -1;
    for (int v = 0; v < a.n; v++) mark[v] = -1;
    for (int k = 0; k < count; k++) {
        int first = (int)rows.size, parent = count;
        for (int c = k, is_own = 1; c >= 0; c = is_own ? child[k] : sibling[c], is_own = 0) {
            const int *list = is_own ? later + begin[k] : rows.at + f->row_at.at[c];
            int size = is_own ? begin[k + 1] - begin[k] : f->row_at.at[c + 1] - f->row_at.at[c];
            if (!ints_room(&rows, size)) {
                memory->failed = 1;
                goto end;
            }
            if (!is_own) list = rows.at + f->row_at.at[c];
            for (int q = 0; q < size; q++) {
                int v = list[q];
                if (front_of[v] == k || mark[v] == k) continue;
                mark[v] = k, rows.at[rows.size++] = v;
                if (front_of[v] < parent) parent = front_of[v];
            }
        }
        f->row_at.at[k] = first, f->row_at.at[k + 1] = (int)rows.size;
        f->parent.at[k] = parent < count ? parent : -1;
        if (parent < count) sibling[k] = child[parent], child[parent] = k;
    }
    free(f->rows.at);
    f->rows = rows, rows.at = NULL;
end:
    free(front_of), free(mark), free(begin), free(later), free(child), free(rows.at);
}

/* into[k] is the front that k is joined into, itself where it stays; `pivots` and `rows` become those of the joined. */
static void join_fronts(const Fronts *f, int *into, int *pivots, int *rows) {
    int count = (int)f->parent.size;
    for (int k = 0; k < count; k++) {
        into[k] = k;
        pivots[k] = f->pivot_at.at[k + 1] - f->pivot_at.at[k];
        rows[k] = f->row_at.at[k + 1] - f->row_at.at[k];
    }
    for (int k = 0; k < count; k++) {
        int p = f->parent.at[k];
        if (p < 0) continue;
        double zeros = (double)pivots[k] * (pivots[p] + rows[p] - rows[k]);
        double own = 0.5 * pivots[k] * (pivots[k] + 2.0 * rows[k]);
        if ((pivots[k] < SMALL && pivots[p] < SMALL) || zeros <= ZEROS * own) {
            into[k] = p;
            pivots[p] += pivots[k];
        }
    }
    for (int k = count - 1; k >= 0; k--) into[k] = into[into[k]]; /* parents come later than their children */
}

/* A child of a front: what the stack holds while its subtree is eliminated, and of this what is left for the parent. */
typedef struct {
    int front;
    double most, left;
} Child;

static int by_what_is_freed(const void *a, const void *b) {
    const Child *p = a, *q = b;
    double first = p->most - p->left, second = q->most - q->left;
    return first != second ? (first < second) - (first > second) : p->front - q->front;
}

/* Puts the children of front k, a list, into the order that needs the smallest stack, and gives that (Liu, On the storage
   requirement in the out-of-core multifrontal method, ACM Transactions on Mathematical Software 12 (1986) 249). */
static double order_children(int k, int *child, int *sibling, const double *most, const int *rows, Child *list) {
    int count = 0;
    double found = 0.0, below = 0.0;
    for (int c = child[k]; c >= 0; c = sibling[c]) list[count++] = (Child){c, most[c], (double)rows[c] * rows[c]};
    qsort(list, (size_t)count, sizeof(Child), by_what_is_freed);
    child[k] = -1;
    for (int i = count - 1; i >= 0; i--) sibling[list[i].front] = child[k], child[k] = list[i].front;
    for (int i = 0; i < count; i++) found = fmax(found, below + list[i].most), below += list[i].left;
    return fmax(found, (double)rows[k] * rows[k]);
}

/* The fronts that stay, children before parents and each subtree in one piece: new[k] is the number of front k. */
static int number_fronts(const Fronts *f, const int *into, const int *rows, int *new, int *parent, Memory *memory) {
    int count = (int)f->parent.size, made = 0, *child = TAKE(memory, int, 3 * (ptrdiff_t)count + 1);
    double *most = TAKE(memory, double, count);
    Child *list = TAKE(memory, Child, count);
    if (memory->failed) goto end;
    int *sibling = child + count, *stack = sibling + count, top;
    for (int k = 0; k < count; k++) child[k] = -1, new[k] = -1;
    for (int k = 0; k < count; k++) { /* children come first */
        if (into[k] != k) continue;
        int p = f->parent.at[k];
        most[k] = order_children(k, child, sibling, most, rows, list);
        parent[k] = p < 0 ? -1 : into[p];
        if (parent[k] >= 0) sibling[k] = child[parent[k]], child[parent[k]] = k;
    }
    for (int root = 0; root < count; root++) {
        if (into[root] != root || parent[root] >= 0) continue;
        for (stack[0] = root, top = 0; top >= 0;) {
            int k = stack[top];
            if (child[k] >= 0) stack[++top] = child[k], child[k] = sibling[child[k]];
            else new[k] = made++, top--;
        }
    }
end:
    free(child), free(most), free(list);
    return made;
}

/* Where the entries of A go: column by column of each front. */
static void place_entries(Analysis *t, Pattern a, const int *place, const int *front_of, Memory *memory) {
    int nz = a.begin[a.n], *local = TAKE(memory, int, t->n + 1), *at = TAKE(memory, int, t->fronts + 1);
    t->entry_at = TAKE(memory, int, t->fronts + 1);
    t->entry = TAKE(memory, int, nz), t->entry_to = TAKE(memory, int, nz);
    int *row = TAKE(memory, int, nz); /* of each entry, in the order of elimination */
    if (memory->failed) goto end;
    memset(t->entry_at, 0, (size_t)(t->fronts + 1) * sizeof(int));
    for (int j = 0; j < a.n; j++)
        for (int k = a.begin[j]; k < a.begin[j + 1]; k++) {
            int p = place[j] < place[a.row[k]] ? j : a.row[k];
            t->entry_at[front_of[place[p]] + 1]++;
        }
    for (int s = 0; s < t->fronts; s++) t->entry_at[s + 1] += t->entry_at[s], at[s] = t->entry_at[s];
    for (int j = 0; j < a.n; j++)
        for (int k = a.begin[j]; k < a.begin[j + 1]; k++) {
            int p = place[j], q = place[a.row[k]], low = p < q ? p : q, to = at[front_of[low]]++;
            t->entry[to] = k, t->entry_to[to] = low, row[to] = p < q ? q : p;
        }
    for (int s = 0; s < t->fronts; s++) {
        int own = t->first[s + 1] - t->first[s];
        for (int k = t->first[s]; k < t->first[s + 1]; k++) local[k] = k - t->first[s];
        for (int k = t->row_at[s]; k < t->row_at[s + 1]; k++) local[t->row[k]] = own + k - t->row_at[s];
        int ld = whole_lanes(own + t->row_at[s + 1] - t->row_at[s]);
        for (int k = t->entry_at[s]; k < t->entry_at[s + 1]; k++)
            t->entry_to[k] = local[row[k]] + local[t->entry_to[k]] * ld;
    }
    for (int s = 0; s < t->fronts; s++) {
        int p = t->parent[s];
        if (p < 0) continue;
        int own = t->first[p + 1] - t->first[p];
        for (int k = t->row_at[s], q = t->row_at[p]; k < t->row_at[s + 1]; k++) {
            int row = t->row[k];
            if (row < t->first[p + 1]) {
                t->in_parent[k] = row - t->first[p];
                continue;
            }
            while (t->row[q] < row) q++;
            t->in_parent[k] = own + q - t->row_at[p];
        }
    }
end:
    free(local), free(at), free(row);
}

/* The analysis of a pattern with pairs for fronts and for nodes; NULL if memory runs out. */
static Analysis *analyse(Pattern a, const int *partner, const int *of_nodes) {
    Memory all = {0}, *memory = &all;
    Fronts fronts, *f = &fronts;
    find_fronts(a, partner, f, memory);
    if (!memory->failed) reduce_rows(a, f, memory);
    int count = (int)f->parent.size;
    Analysis *t = calloc(1, sizeof(Analysis));
    int *work = TAKE(memory, int, 5 * (ptrdiff_t)(count + 1) + 2 * (ptrdiff_t)(a.n + 1));
    if (!t || memory->failed) goto failed;
    int *into = work, *pivots = into + count + 1, *rows = pivots + count + 1, *new = rows + count + 1;
    int *parent = new + count + 1, *place = parent + count + 1, *front_of = place + a.n + 1;
    join_fronts(f, into, pivots, rows);
    t->n = a.n;
    if (a.n <= SMALL_SYSTEM) t->nodes = new_nodes(a, of_nodes, memory);
    t->fronts = number_fronts(f, into, rows, new, parent, memory);
    ptrdiff_t all_rows = 0;
    for (int k = 0; k < count; k++)
        if (into[k] == k) all_rows += rows[k];
    int nz = a.begin[a.n];
    t->order = TAKE(memory, int, a.n), t->first = TAKE(memory, int, t->fronts + 1);
    t->row_at = TAKE(memory, int, t->fronts + 1), t->row = TAKE(memory, int, all_rows);
    t->in_parent = TAKE(memory, int, all_rows), t->parent = TAKE(memory, int, t->fronts);
    t->partner = TAKE(memory, int, 2 * (ptrdiff_t)a.n), t->begin = TAKE(memory, int, a.n + 1);
    t->column_rows = TAKE(memory, int, nz);
    if (memory->failed) goto failed;
    t->of_nodes = t->partner + a.n;
    memcpy(t->partner, partner, (size_t)a.n * sizeof(int));
    memcpy(t->of_nodes, of_nodes, (size_t)a.n * sizeof(int));
    memcpy(t->begin, a.begin, (size_t)(a.n + 1) * sizeof(int));
    memcpy(t->column_rows, a.row, (size_t)nz * sizeof(int));
    memset(t->first, 0, (size_t)(t->fronts + 1) * sizeof(int));
    memset(t->row_at, 0, (size_t)(t->fronts + 1) * sizeof(int));
    for (int k = 0; k < count; k++)
        if (into[k] == k) {
            int s = new[k];
            t->first[s + 1] = pivots[k], t->row_at[s + 1] = rows[k];
            t->parent[s] = parent[k] < 0 ? -1 : new[parent[k]];
        }
    for (int s = 0; s < t->fronts; s++) {
        ptrdiff_t own = t->first[s + 1], size = own + t->row_at[s + 1];
        t->factor += own * size - own * (own - 1) / 2;
        if (size > t->largest) t->largest = (int)size;
        t->first[s + 1] += t->first[s], t->row_at[s + 1] += t->row_at[s];
    }
    int *at = front_of; /* where the next pivot of a front goes */
    for (int s = 0; s < t->fronts; s++) at[s] = t->first[s];
    for (int k = 0; k < count; k++)
        for (int q = f->pivot_at.at[k]; q < f->pivot_at.at[k + 1]; q++) {
            int s = new[into[k]];
            place[f->pivots.at[q]] = at[s], t->order[at[s]++] = f->pivots.at[q];
        }
    for (int s = 0; s < t->fronts; s++)
        for (int k = t->first[s]; k < t->first[s + 1]; k++) front_of[k] = s;
    for (int k = 0; k < count; k++) {
        if (into[k] != k) continue;
        int *list = t->row + t->row_at[new[k]];
        for (int q = 0; q < rows[k]; q++) list[q] = place[f->rows.at[f->row_at.at[k] + q]];
        qsort(list, (size_t)rows[k], sizeof(int), ascending);
    }
    if (t->largest > MOST_ROWS) goto failed;
    place_entries(t, a, place, front_of, memory);
    if (memory->failed) goto failed;
    free(work), free_fronts(f);
    return t;
failed:
    free(work), free_fronts(f), free_analysis(t);
    return NULL;
}
