/* The elimination in one front: a full symmetric matrix of which the lower triangle is used, column by column. */

/* Columns that are eliminated before the columns behind them are brought up to date. */
enum { PANEL = 32 };
/* Columns of a tile; it has as many rows as there are lanes. */
enum { TILE = 6 };
/* A pivot with this share of the largest entry beside it is taken without looking for a better one. */
static const double GOOD = 0.1;

typedef struct {
    double *f;       /* (ld, m + TILE), zero from row m and from column m on; what is above the diagonal is not used */
    int m, ld, own;  /* rows, then rounded up to lanes; those that may be eliminated, the first ones */
    int *index;      /* (m,) what the rows are: moved with them */
    double *inverse; /* (2 own,) of the pivots: diagonal and the entry below it */
    double *w;       /* (ld + TILE, PANEL): columns of L D */
    double threshold, small;
    int done, negative;
} Front;

/* Numbers side by side: how many has no influence on any result. */
#ifndef LANES
#define LANES 2
#endif
typedef double Lanes __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef int64_t LaneBits __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
/* Four numbers, where the order of a sum is that of four. */
typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));
#define AT(p) (*(Lanes *)(p))

/* The number of each lane. */
#if LANES == 8
static const LaneBits LANE = {0, 1, 2, 3, 4, 5, 6, 7};
#elif LANES == 4
static const LaneBits LANE = {0, 1, 2, 3};
#else
static const LaneBits LANE = {0, 1};
#endif

/* The first row of the lanes that have row i, and the rows of all lanes. */
static inline int lanes_of(int i) { return i & ~(LANES - 1); }
static inline int whole_lanes(int rows) { return lanes_of(rows + LANES - 1); }

/* c -= a x, of length n. */
static inline void subtract_one(double *c, const double *a, double x, int n) {
    int i = 0;
    for (; i + LANES <= n; i += LANES) AT(c + i) -= AT(a + i) * x;
    for (; i < n; i++) c[i] -= a[i] * x;
}

/* c[i, k] -= sum over q of a[i, q] b[k, q] for columns k from `begin` to `end` and rows i from k to ld, and beside them for
   what completes tiles and lanes. */
static void subtract_product(double *c, ptrdiff_t ld, const double *a, const double *b, int begin, int end, int depth) {
    for (int k = begin; k < end; k += TILE)
        for (int i = lanes_of(k); i < ld; i += LANES) {
            double *c0 = c + k * ld + i, *c1 = c0 + ld, *c2 = c1 + ld, *c3 = c2 + ld, *c4 = c3 + ld, *c5 = c4 + ld;
            Lanes s0 = AT(c0), s1 = AT(c1), s2 = AT(c2), s3 = AT(c3), s4 = AT(c4), s5 = AT(c5);
            const double *p = a + i, *r = b + k;
            for (int q = 0; q < depth; q++, p += ld, r += ld + TILE) {
                Lanes u = AT(p);
                s0 -= u * r[0], s1 -= u * r[1], s2 -= u * r[2], s3 -= u * r[3], s4 -= u * r[4], s5 -= u * r[5];
            }
            AT(c0) = s0, AT(c1) = s1, AT(c2) = s2, AT(c3) = s3, AT(c4) = s4, AT(c5) = s5;
        }
}

/* Exchanges rows and columns i < j of what is left from row `from` on; of columns before them all rows are exchanged. */
static void exchange(Front *t, int i, int j) {
    double *f = t->f, x;
    ptrdiff_t ld = t->ld;
    if (i == j) return;
#define SWAP(a, b) (x = (a), (a) = (b), (b) = x)
    for (ptrdiff_t k = 0; k < i; k++) SWAP(f[i + k * ld], f[j + k * ld]);
    for (ptrdiff_t k = i + 1; k < j; k++) SWAP(f[k + i * ld], f[j + k * ld]);
    for (ptrdiff_t k = j + 1; k < t->m; k++) SWAP(f[k + i * ld], f[k + j * ld]);
    SWAP(f[i + i * ld], f[j + j * ld]);
    int number = t->index[i];
    t->index[i] = t->index[j], t->index[j] = number;
}

/* The largest size of an entry beside the diagonal of column j in what is left from `from` on; `but` is passed over. */
static double largest_beside(const Front *t, int from, int j, int but) {
    const double *f = t->f, *column = f + j * (ptrdiff_t)t->ld;
    double largest = 0.0;
    for (int k = from; k < j; k++) {
        double size = fabs(f[j + k * (ptrdiff_t)t->ld]);
        if (size > largest && k != but) largest = size;
    }
    Lanes sizes = {0.0};
    for (int k = lanes_of(j + 1); k < t->ld; k += LANES) { /* zero from row m on */
        LaneBits row = LANE + k, bits = (LaneBits)AT(column + k) & INT64_MAX & (row > j) & (row != but);
        LaneBits is_larger = (Lanes)bits > sizes;
        sizes = (Lanes)((bits & is_larger) | ((LaneBits)sizes & ~is_larger));
    }
    double size[LANES];
    for (int q = 0; q < LANES; q++) size[q] = sizes[q];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int q = 0; q < half; q++) size[q] = size[q + half] > size[q] ? size[q + half] : size[q];
    return size[0] > largest ? size[0] : largest;
}

/* The first row beside the diagonal of column j with an entry of this size; -1 for zero. */
static int row_beside(const Front *t, int from, int j, double size) {
    if (size == 0.0) return -1;
    for (int k = from; k < j; k++)
        if (fabs(t->f[j + k * (ptrdiff_t)t->ld]) == size) return k;
    for (int k = j + 1; k < t->m; k++)
        if (fabs(t->f[k + j * (ptrdiff_t)t->ld]) == size) return k;
    return -1;
}

/* Eliminates column j, which is the first of what is left; columns up to `end` are brought up to date. */
static void eliminate_one(Front *t, int j, int panel, int end) {
    ptrdiff_t ld = t->ld;
    double *column = t->f + j * ld, *w = t->w + (j - panel) * (ld + TILE), inverse = 1.0 / column[j];
    t->inverse[2 * j] = inverse, t->inverse[2 * j + 1] = 0.0;
    t->negative += column[j] < 0.0;
    for (int i = lanes_of(j + 1); i < ld; i += LANES) { /* rows up to j are not used */
        Lanes x = AT(column + i);
        AT(w + i) = x, AT(column + i) = x * inverse;
    }
    column[j] = 1.0;
    for (int k = j + 1; k < end; k++) {
        double x = w[k], *c = t->f + k * ld;
        if (x == 0.0) continue;
        for (int i = lanes_of(k); i < ld; i += LANES)
            AT(c + i) = AT(c + i) - AT(column + i) * x;
    }
}

/* The first column from k on, before `end`, with an entry in one of two rows of L D that is not zero. */
static inline int next_column(const double *w0, const double *w1, int k, int end) {
    while (k < end && w0[k] == 0.0 && w1[k] == 0.0) k++;
    return k;
}

static void eliminate_two(Front *t, int j, int panel, int end) {
    ptrdiff_t ld = t->ld;
    double *c0 = t->f + j * ld, *c1 = c0 + ld, *w0 = t->w + (j - panel) * (ld + TILE), *w1 = w0 + ld + TILE;
    double a = c0[j], b = c0[j + 1], c = c1[j + 1], scale = fabs(b), det = (a / scale) * (c / scale) - 1.0;
    double aa = c / scale / det / scale, cc = a / scale / det / scale, bb = -b / scale / det / scale;
    t->inverse[2 * j] = aa, t->inverse[2 * j + 1] = bb, t->inverse[2 * j + 2] = cc, t->inverse[2 * j + 3] = 0.0;
    t->negative += det < 0.0 ? 1 : a + c < 0.0 ? 2 : 0;
    for (int i = lanes_of(j + 2); i < ld; i += LANES) { /* rows up to j + 1 are not used */
        Lanes x = AT(c0 + i), y = AT(c1 + i);
        AT(w0 + i) = x, AT(w1 + i) = y;
        AT(c0 + i) = aa * x + bb * y, AT(c1 + i) = bb * x + cc * y;
    }
    c0[j] = c1[j + 1] = 1.0, c0[j + 1] = 0.0;
    for (int k = next_column(w0, w1, j + 2, end), next; k < end; k = next_column(w0, w1, next + 1, end)) {
        next = next_column(w0, w1, k + 1, end);
        double x0 = w0[k], y0 = w1[k], *p = t->f + k * ld;
        if (next < end) {
            double x1 = w0[next], y1 = w1[next], *q = t->f + next * ld;
            for (int i = lanes_of(k); i < ld; i += LANES) {
                Lanes u = AT(c0 + i), v = AT(c1 + i);
                AT(p + i) = AT(p + i) - u * x0 - v * y0;
                AT(q + i) = AT(q + i) - u * x1 - v * y1;
            }
        } else
            for (int i = lanes_of(k); i < ld; i += LANES) AT(p + i) = AT(p + i) - AT(c0 + i) * x0 - AT(c1 + i) * y0;
    }
}

/* Whether the pivot of two by two of columns i < j does not let entries grow beyond the threshold. */
static int two_hold(const Front *t, int from, int i, int j, double threshold) {
    ptrdiff_t ld = t->ld;
    double a = t->f[i + i * ld], b = t->f[j + i * ld], c = t->f[j + j * ld], scale = fabs(b);
    if (!(scale > t->small)) return 0;
    double det = fabs((a / scale) * (c / scale) - 1.0) * scale;
    double beside_i = largest_beside(t, from, i, j), beside_j = largest_beside(t, from, j, i);
    if (!(det > t->small)) return 0;
    double grown_i = (fabs(c) * beside_i + scale * beside_j) / scale;
    double grown_j = (scale * beside_i + fabs(a) * beside_j) / scale;
    return threshold * fmax(grown_i, grown_j) <= det;
}

/* The columns of the next pivot among those from `from` to `end`, in `one` and `two` (-1); 0 if none holds. */
static int find_pivot(const Front *t, int from, int end, int *one, int *two) {
    for (int j = from; j < end; j++) {
        double diagonal = fabs(t->f[j + j * (ptrdiff_t)t->ld]), beside = largest_beside(t, from, j, -1);
        *one = j, *two = -1;
        if (diagonal > t->small && diagonal >= GOOD * beside) return 1;
        int row = row_beside(t, from, j, beside), i = row < j ? row : j, k = row < j ? j : row;
        int has_two = row >= 0 && row < end;
        if (has_two && two_hold(t, from, i, k, GOOD * GOOD > t->threshold ? GOOD * GOOD : t->threshold)) {
            *one = i, *two = k;
            return 1;
        }
        if (diagonal > t->small && diagonal >= t->threshold * beside) return 1;
        if (has_two && two_hold(t, from, i, k, t->threshold)) {
            *one = i, *two = k;
            return 1;
        }
    }
    return 0;
}

/* Eliminates what can be eliminated of the first `own` columns; the rest of them ends behind the pivots. */
static void eliminate_front(Front *t) {
    int left = t->own; /* columns from here on have been tried in vain since the last panel */
    t->done = 0;
    while (t->done < t->own) {
        int panel = t->done, end = panel + PANEL < left ? panel + PANEL : left, j = panel, one, two;
        if (end <= panel) break;
        while (j < end && find_pivot(t, j, end, &one, &two)) {
            exchange(t, j, one);
            if (two < 0) eliminate_one(t, j, panel, end), j++;
            else exchange(t, j + 1, two), eliminate_two(t, j, panel, end), j += 2;
        }
        int pivots = j - panel;
        if (pivots && end < t->m) /* the columns behind the panel */
            subtract_product(t->f, t->ld, t->f + panel * (ptrdiff_t)t->ld, t->w, end, t->m, pivots);
        t->done = j;
        if (j == end) {
            if (pivots && left < t->own && end == left) left = t->own; /* others may hold now */
            continue;
        }
        /* those of the panel that did not hold go behind all others */
        if (pivots) left = t->own;
        for (int k = end - 1; k >= j; k--) {
            left--;
            if (left > k) exchange(t, k, left);
        }
        if (left <= t->done) break;
    }
}

/* Eliminates what is left of a front without other rows, by pivots of the largest entry there is (Bunch, Parlett, SIAM
   Journal on Numerical Analysis 8 (1971) 639); 0 if that is nothing. */
static int eliminate_rest(Front *t) {
    ptrdiff_t ld = t->ld;
    while (t->done < t->own) {
        int j = t->done, diagonal = j, one = j, two = j;
        double *f = t->f, beside = -1.0;
        for (int k = j; k < t->own; k++) {
            if (fabs(f[k + k * ld]) > fabs(f[diagonal + diagonal * ld])) diagonal = k;
            for (int i = k + 1; i < t->own; i++)
                if (fabs(f[i + k * ld]) > beside) beside = fabs(f[i + k * ld]), one = k, two = i;
        }
        double largest = fabs(f[diagonal + diagonal * ld]);
        if (!(fmax(largest, beside) > t->small)) return 0;
        if (largest >= 0.64 * beside) {
            exchange(t, j, diagonal), eliminate_one(t, j, j, t->own), t->done += 1;
        } else {
            exchange(t, j, one), exchange(t, j + 1, two), eliminate_two(t, j, j, t->own), t->done += 2;
        }
    }
    return 1;
}
