/* From the pattern of a matrix to the graph of its nodes, and from the order of their elimination to fronts. */

static void free_graph(Graph *g) {
    free(g->lists.at), free(g->at), free(g->elements);
}

/* The graph of the nodes: node k is variable node[k] and its partner, of_node the other way round. */
static void make_graph(Graph *g, Pattern a, const int *partner, int *node, int *of_node, Memory *memory) {
    memset(g, 0, sizeof(*g));
    for (int v = 0; v < a.n; v++)
        if (partner[v] < 0 || v < partner[v]) {
            of_node[v] = g->nodes, node[g->nodes++] = v;
            if (partner[v] >= 0) of_node[partner[v]] = of_node[v];
        }
    int n = g->nodes, *part = taken(memory, 13 * (ptrdiff_t)(n + 1) + a.n + 1, sizeof(int));
    g->at = TAKE(memory, ptrdiff_t, n + 1);
    g->elements = part;
    if (memory->failed) return;
    memset(part, 0, (size_t)(13 * (ptrdiff_t)(n + 1) + a.n + 1) * sizeof(int));
    int **of[] = {&g->elements, &g->others, &g->weight, &g->degree,     &g->next,  &g->last, &g->mark,
                  &g->outside,  &g->before, &g->after,  &g->eliminated, &g->hash, &g->head};
    for (int k = 0; k < 13; k++) *of[k] = part + k * (ptrdiff_t)(n + 1);
    /* neighbours with repetitions, then without */
    memset(g->at, 0, (size_t)(n + 1) * sizeof(ptrdiff_t));
    for (int pass = 0; pass < 2; pass++) {
        for (int j = 0; j < a.n; j++)
            for (int k = a.begin[j]; k < a.begin[j + 1]; k++) {
                int p = of_node[j], q = of_node[a.row[k]];
                if (p == q) continue;
                if (pass) g->lists.at[g->at[p] + g->others[p]++] = q, g->lists.at[g->at[q] + g->others[q]++] = p;
                else g->at[p + 1]++, g->at[q + 1]++;
            }
        if (pass) break;
        for (int i = 0; i < n; i++) g->at[i + 1] += g->at[i];
        if (!ints_room(&g->lists, g->at[n] + n)) {
            memory->failed = 1;
            return;
        }
        g->lists.size = g->at[n];
    }
    for (int i = 0; i < n; i++) {
        int *list = g->lists.at + g->at[i], count = 0;
        g->mark[i] = ++g->stamp;
        for (int k = 0; k < g->others[i]; k++)
            if (g->mark[list[k]] != g->stamp) g->mark[list[k]] = g->stamp, list[count++] = list[k];
        g->others[i] = count, g->next[i] = -1, g->last[i] = i;
        g->weight[i] = partner[node[i]] < 0 ? 1 : 2;
    }
}

/* Adds row v to every front between those that eliminate what stands beside it and the roots. */
static int add_row(Fronts *f, Ints *more, const int *front_of, const int *beside, int count, int v, int *mark) {
    for (int k = 0; k < count; k++)
        for (int e = front_of[beside[k]]; e >= 0 && mark[e] != v; e = f->parent.at[e]) {
            if (!ints_room(more, 2)) return 0;
            mark[e] = v, more->at[more->size++] = e, more->at[more->size++] = v;
        }
    return 1;
}

/* The fronts that eliminate all variables of a pattern, children before their parents. */
static void find_fronts(Pattern a, const int *partner, Fronts *f, Memory *memory) {
    Graph graph, *g = &graph;
    int *node = TAKE(memory, int, a.n), *of_node = TAKE(memory, int, a.n), *made = TAKE(memory, int, a.n + 1);
    memset(f, 0, sizeof(*f)), memset(g, 0, sizeof(*g));
    if (!memory->failed) make_graph(g, a, partner, node, of_node, memory);
    if (memory->failed) goto end;
    int dense = 0, limit = (int)(FEW + DENSE * sqrt(g->nodes));
    for (int i = 0; i < g->nodes; i++)
        if (g->others[i] > limit) g->weight[i] = 0, made[dense++] = i;
    int *of_dense = TAKE(memory, int, dense + 1);
    if (memory->failed) goto end;
    memcpy(of_dense, made, (size_t)dense * sizeof(int));
    for (int d = 0; d <= a.n; d++) g->head[d] = -1;
    for (int i = 0; i < g->nodes; i++) {
        if (!g->weight[i]) continue;
        g->alive += g->weight[i];
        for (int k = 0; k < g->others[i]; k++) g->degree[i] += g->weight[g->lists.at[g->at[i] + k]];
        put_in(g, i);
    }
    /* what stands beside a dense node is looked up after the elimination, which forgets it: copy it first */
    Ints beside = {0}, begins = {0};
    for (int d = 0; d < dense; d++) {
        int i = of_dense[d], count = g->others[i];
        if (!ints_room(&beside, count) || !ints_room(&begins, 2)) memory->failed = 1;
        if (memory->failed) break;
        begins.at[begins.size++] = (int)beside.size;
        for (int k = 0; k < count; k++) {
            int j = g->lists.at[g->at[i] + k];
            if (g->weight[j]) beside.at[beside.size++] = j;
        }
        begins.at[d + 1] = (int)beside.size;
    }
    if (!memory->failed && !eliminate(g, node, partner, f, made)) memory->failed = 1;
    if (!memory->failed && dense) {
        int fronts = (int)f->parent.size, *front_of = g->outside, *mark = g->hash;
        for (int k = 0; k < fronts; k++)
            for (int j = made[k]; j >= 0; j = g->next[j]) front_of[j] = k;
        for (int k = 0; k < g->nodes; k++) mark[k] = -1;
        Ints more = {0};
        for (int d = 0; d < dense && !memory->failed; d++)
            for (int v = node[of_dense[d]], u = partner[v], k = 0; k < 2 && v >= 0; k++, v = u)
                if (!add_row(f, &more, front_of, beside.at + begins.at[d], begins.at[d + 1] - begins.at[d], v, mark))
                    memory->failed = 1;
        /* the rows again, with those that were added */
        ptrdiff_t count = f->rows.size + more.size / 2;
        int *rows = TAKE(memory, int, count), *size = TAKE(memory, int, fronts + 1);
        if (!memory->failed && ints_room(&f->pivots, 2 * (ptrdiff_t)dense) && ints_room(&f->parent, 1) &&
            ints_room(&f->row_at, 2) && ints_room(&f->pivot_at, 2)) {
            memset(size, 0, (size_t)(fronts + 1) * sizeof(int));
            for (ptrdiff_t k = 0; k < more.size; k += 2) size[more.at[k]]++;
            f->row_at.at[fronts] = (int)f->rows.size;
            for (int k = 0, at = 0; k < fronts; k++) {
                int begin = f->row_at.at[k], own = f->row_at.at[k + 1] - begin;
                memcpy(rows + at, f->rows.at + begin, (size_t)own * sizeof(int));
                f->row_at.at[k] = at;
                at += own + size[k];
                size[k] = f->row_at.at[k] + own;
            }
            for (ptrdiff_t k = 0; k < more.size; k += 2) rows[size[more.at[k]]++] = more.at[k + 1];
            free(f->rows.at);
            f->rows.at = rows, f->rows.size = f->rows.room = count, rows = NULL;
            for (int k = 0; k < fronts; k++)
                if (f->parent.at[k] < 0) f->parent.at[k] = fronts;
            f->parent.at[f->parent.size++] = -1;
            f->pivot_at.at[f->pivot_at.size++] = (int)f->pivots.size;
            f->row_at.at[f->row_at.size++] = (int)count;
            for (int d = 0; d < dense; d++) expand(g, of_dense[d], node, partner, &f->pivots);
        } else memory->failed = 1;
        free(rows), free(size), free(more.at);
    }
    if (!memory->failed && ints_room(&f->pivot_at, 1) && ints_room(&f->row_at, 1)) {
        f->pivot_at.at[f->parent.size] = (int)f->pivots.size;
        f->row_at.at[f->parent.size] = (int)f->rows.size;
    } else memory->failed = 1;
    free(of_dense), free(beside.at), free(begins.at);
end:
    free(node), free(of_node), free(made), free_graph(g);
}
