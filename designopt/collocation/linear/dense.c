/* The elimination in one front: a full symmetric matrix of which the lower triangle is used, column by column. */

/* Columns that are eliminated before the columns behind them are brought up to date. */
enum { PANEL = 32 };
/* A pivot with this share of the largest entry beside it is taken without looking for a better one. */
static const double GOOD = 0.1;

typedef struct {
    double *f;       /* (m, m), leading dimension m */
    int m, own;      /* rows; those that may be eliminated, the first ones */
    int *index;      /* (m,) what the rows are: moved with them */
    double *inverse; /* (2 own,) of the pivots: diagonal and the entry below it */
    double *w;       /* (m, PANEL): columns of L D */
    double threshold, small;
    int done, negative;
} Front;

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

/* Four numbers at once, by any processor: gcc and clang make what it has of it. */
typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));

/* c -= a x + b y, of length n. */
static inline void subtract(double *c, const double *a, double x, const double *b, double y, int n) {
    int i = 0;
    for (; i + 3 < n; i += 4) *(Four *)(c + i) = *(Four *)(c + i) - *(const Four *)(a + i) * x - *(const Four *)(b + i) * y;
    for (; i < n; i++) c[i] = c[i] - a[i] * x - b[i] * y;
}

/* c -= a x, of length n. */
static inline void subtract_one(double *c, const double *a, double x, int n) {
    int i = 0;
    for (; i + 3 < n; i += 4) *(Four *)(c + i) = *(Four *)(c + i) - *(const Four *)(a + i) * x;
    for (; i < n; i++) c[i] = c[i] - a[i] * x;
}

/* c[i, k] -= sum over q of a[i, q] b[k, q] for rows i >= k, columns k from 0 to `columns`. */
FOR_EACH_PROCESSOR
static void subtract_product(double *c, ptrdiff_t ldc, const double *a, ptrdiff_t lda, const double *b, ptrdiff_t ldb,
                             int rows, int columns, int depth) {
    int k = 0;
    for (; k + 3 < columns; k += 4) {
        double *c0 = c + k * ldc, *c1 = c0 + ldc, *c2 = c1 + ldc, *c3 = c2 + ldc;
        int i = k;
        for (; i + 7 < rows; i += 8) {
            Four s0 = *(Four *)(c0 + i), s1 = *(Four *)(c1 + i), s2 = *(Four *)(c2 + i), s3 = *(Four *)(c3 + i);
            Four t0 = *(Four *)(c0 + i + 4), t1 = *(Four *)(c1 + i + 4), t2 = *(Four *)(c2 + i + 4),
                 t3 = *(Four *)(c3 + i + 4);
            const double *p = a + i, *r = b + k;
            for (int q = 0; q < depth; q++, p += lda, r += ldb) {
                Four u = *(const Four *)p, v = *(const Four *)(p + 4);
                s0 -= u * r[0], s1 -= u * r[1], s2 -= u * r[2], s3 -= u * r[3];
                t0 -= v * r[0], t1 -= v * r[1], t2 -= v * r[2], t3 -= v * r[3];
            }
            *(Four *)(c0 + i) = s0, *(Four *)(c1 + i) = s1, *(Four *)(c2 + i) = s2, *(Four *)(c3 + i) = s3;
            *(Four *)(c0 + i + 4) = t0, *(Four *)(c1 + i + 4) = t1, *(Four *)(c2 + i + 4) = t2;
            *(Four *)(c3 + i + 4) = t3;
        }
        for (; i + 3 < rows; i += 4) {
            Four s0 = *(Four *)(c0 + i), s1 = *(Four *)(c1 + i), s2 = *(Four *)(c2 + i), s3 = *(Four *)(c3 + i);
            const double *p = a + i, *r = b + k;
            for (int q = 0; q < depth; q++, p += lda, r += ldb) {
                Four u = *(const Four *)p;
                s0 -= u * r[0], s1 -= u * r[1], s2 -= u * r[2], s3 -= u * r[3];
            }
            *(Four *)(c0 + i) = s0, *(Four *)(c1 + i) = s1, *(Four *)(c2 + i) = s2, *(Four *)(c3 + i) = s3;
        }
        for (; i < rows; i++) {
            double s0 = c0[i], s1 = c1[i], s2 = c2[i], s3 = c3[i];
            for (int q = 0; q < depth; q++) {
                double u = a[i + q * lda];
                const double *r = b + k + q * ldb;
                s0 -= u * r[0], s1 -= u * r[1], s2 -= u * r[2], s3 -= u * r[3];
            }
            c0[i] = s0, c1[i] = s1, c2[i] = s2, c3[i] = s3;
        }
    }
    for (; k < columns; k++)
        for (int q = 0; q < depth; q++) {
            double r = b[k + q * ldb];
            const double *p = a + q * lda;
            for (int i = k; i < rows; i++) c[i + k * ldc] -= p[i] * r;
        }
}

/* Exchanges rows and columns i < j of what is left from row `from` on; of columns before them all rows are exchanged. */
static void exchange(Front *t, int i, int j) {
    double *f = t->f, x;
    ptrdiff_t m = t->m;
    if (i == j) return;
#define SWAP(a, b) (x = (a), (a) = (b), (b) = x)
    for (ptrdiff_t k = 0; k < i; k++) SWAP(f[i + k * m], f[j + k * m]);
    for (ptrdiff_t k = i + 1; k < j; k++) SWAP(f[k + i * m], f[j + k * m]);
    for (ptrdiff_t k = j + 1; k < m; k++) SWAP(f[k + i * m], f[k + j * m]);
    SWAP(f[i + i * m], f[j + j * m]);
    int number = t->index[i];
    t->index[i] = t->index[j], t->index[j] = number;
}

/* The largest entry beside the diagonal of column j in what is left from `from` on, and its row; `but` is passed over. */
static double largest_beside(const Front *t, int from, int j, int but, int *where) {
    const double *f = t->f;
    ptrdiff_t m = t->m;
    double found = 0.0;
    *where = -1;
    for (int k = from; k < j; k++) {
        double size = fabs(f[j + k * m]);
        if (size > found && k != but) found = size, *where = k;
    }
    for (int k = j + 1; k < t->m; k++) {
        double size = fabs(f[k + j * m]);
        if (size > found && k != but) found = size, *where = k;
    }
    return found;
}

/* Eliminates column j, which is the first of what is left; columns up to `end` are brought up to date. */
FOR_EACH_PROCESSOR
static void eliminate_one(Front *t, int j, int panel, int end) {
    ptrdiff_t m = t->m;
    double *column = t->f + j * m, *w = t->w + (j - panel) * m, inverse = 1.0 / column[j];
    t->inverse[2 * j] = inverse, t->inverse[2 * j + 1] = 0.0;
    t->negative += column[j] < 0.0;
    int i = j + 1;
    for (; i + 3 < t->m; i += 4) {
        Four x = *(const Four *)(column + i);
        *(Four *)(w + i) = x, *(Four *)(column + i) = x * inverse;
    }
    for (; i < t->m; i++) w[i] = column[i], column[i] *= inverse;
    column[j] = 1.0;
    for (int k = j + 1; k < end; k++) {
        if (w[k] != 0.0) subtract_one(t->f + k * m + k, column + k, w[k], t->m - k);
    }
}

FOR_EACH_PROCESSOR
static void eliminate_two(Front *t, int j, int panel, int end) {
    ptrdiff_t m = t->m;
    double *c0 = t->f + j * m, *c1 = c0 + m, *w0 = t->w + (j - panel) * m, *w1 = w0 + m;
    double a = c0[j], b = c0[j + 1], c = c1[j + 1], scale = fabs(b), det = (a / scale) * (c / scale) - 1.0;
    double aa = c / scale / det / scale, cc = a / scale / det / scale, bb = -b / scale / det / scale;
    t->inverse[2 * j] = aa, t->inverse[2 * j + 1] = bb, t->inverse[2 * j + 2] = cc, t->inverse[2 * j + 3] = 0.0;
    t->negative += det < 0.0 ? 1 : a + c < 0.0 ? 2 : 0;
    int i = j + 2;
    for (; i + 3 < t->m; i += 4) {
        Four x = *(const Four *)(c0 + i), y = *(const Four *)(c1 + i);
        *(Four *)(w0 + i) = x, *(Four *)(w1 + i) = y;
        *(Four *)(c0 + i) = aa * x + bb * y, *(Four *)(c1 + i) = bb * x + cc * y;
    }
    for (; i < t->m; i++) {
        double x = c0[i], y = c1[i];
        w0[i] = x, w1[i] = y;
        c0[i] = aa * x + bb * y, c1[i] = bb * x + cc * y;
    }
    c0[j] = c1[j + 1] = 1.0, c0[j + 1] = 0.0;
    w0[j + 1] = 0.0;
    for (int k = j + 2; k < end; k++) {
        subtract(t->f + k * m + k, c0 + k, w0[k], c1 + k, w1[k], t->m - k);
    }
}

/* Whether the pivot of two by two of columns i < j does not let entries grow beyond the threshold. */
static int two_hold(const Front *t, int from, int i, int j, double threshold) {
    ptrdiff_t m = t->m;
    int where;
    double a = t->f[i + i * m], b = t->f[j + i * m], c = t->f[j + j * m], scale = fabs(b);
    if (!(scale > t->small)) return 0;
    double det = fabs((a / scale) * (c / scale) - 1.0) * scale;
    double beside_i = largest_beside(t, from, i, j, &where), beside_j = largest_beside(t, from, j, i, &where);
    if (!(det > t->small)) return 0;
    double grown_i = (fabs(c) * beside_i + scale * beside_j) / scale;
    double grown_j = (scale * beside_i + fabs(a) * beside_j) / scale;
    return threshold * fmax(grown_i, grown_j) <= det;
}

/* The columns of the next pivot among those from `from` to `end`, in `one` and `two` (-1); 0 if none holds. */
static int find_pivot(const Front *t, int from, int end, int *one, int *two) {
    ptrdiff_t m = t->m;
    for (int j = from; j < end; j++) {
        int where;
        double diagonal = fabs(t->f[j + j * m]), beside = largest_beside(t, from, j, -1, &where);
        *one = j, *two = -1;
        if (diagonal > t->small && diagonal >= GOOD * beside) return 1;
        if (where >= 0 && where < end) {
            int i = where < j ? where : j, k = where < j ? j : where;
            double limit = GOOD * GOOD > t->threshold ? GOOD * GOOD : t->threshold;
            if (two_hold(t, from, i, k, limit)) {
                *one = i, *two = k;
                return 1;
            }
        }
        if (diagonal > t->small && diagonal >= t->threshold * beside) return 1;
        if (where >= 0 && where < end) {
            int i = where < j ? where : j, k = where < j ? j : where;
            if (two_hold(t, from, i, k, t->threshold)) {
                *one = i, *two = k;
                return 1;
            }
        }
    }
    return 0;
}

/* Eliminates what can be eliminated of the first `own` columns; the rest of them ends behind the pivots. */
static void eliminate_front(Front *t) {
    ptrdiff_t m = t->m;
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
            subtract_product(t->f + end + end * m, m, t->f + end + panel * m, m, t->w + end, m, t->m - end, t->m - end,
                             pivots);
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
    ptrdiff_t m = t->m;
    while (t->done < t->own) {
        int j = t->done, diagonal = j, one = j, two = j;
        double *f = t->f, beside = -1.0;
        for (int k = j; k < t->own; k++) {
            if (fabs(f[k + k * m]) > fabs(f[diagonal + diagonal * m])) diagonal = k;
            for (int i = k + 1; i < t->own; i++)
                if (fabs(f[i + k * m]) > beside) beside = fabs(f[i + k * m]), one = k, two = i;
        }
        double largest = fabs(f[diagonal + diagonal * m]);
        if (!(fmax(largest, beside) > t->small)) return 0;
        if (largest >= 0.64 * beside) {
            exchange(t, j, diagonal), eliminate_one(t, j, j, t->own), t->done += 1;
        } else {
            exchange(t, j, one), exchange(t, j + 1, two), eliminate_two(t, j, j, t->own), t->done += 2;
        }
    }
    return 1;
}
