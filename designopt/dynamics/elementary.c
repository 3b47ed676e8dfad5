/* Elementary functions on `real`: one number, or LANES numbers side by side (vector extensions of GCC and Clang).

   Every operation is one of IEEE 754 (+ - * /, square root, comparison, bits) without contraction, and no lane sees
   another: a number gives the same bits alone, in any lane, and on every processor. Mathematical libraries differ in the
   last digit from version to version and from vector to scalar.

   Errors in units in the last place (tests/dynamics/test_elementary.py measures them): at most 1 for sin, cos, exp and log,
   3 for the others. sin, cos and tan hold this to |x| = 1e6; beyond, the argument
   counts as rounded by half a unit, and beyond 1e15 they are NaN. Results below the smallest normal number may err more.

   Methods: reduction of Cody & Waite (Software Manual for the Elementary Functions, 1980); log and atan by odd series
   in (m - 1)/(m + 1), exact products by Dekker (1971), pow by a logarithm of twice the digits. Polynomials interpolate
   at Chebyshev nodes (50 digits, rounded). */

#ifndef LANES
#define LANES 1
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline)) /* sizes become constants */
#else
#define INLINE static inline
#endif
#ifdef LARGE
#define FUNCTION static __attribute__((noinline)) /* copies of them would fill megabytes */
#else
#define FUNCTION INLINE
#endif

#if LANES > 1
typedef double real __attribute__((vector_size(8 * LANES)));
typedef long long mask __attribute__((vector_size(8 * LANES))); /* of each lane: all bits or none */
#define LANE(v, l) ((v)[l])
#define ALL(x) ((x) - (real){0}) /* every lane x */
#define ALL_BITS(m) ((m) - (mask){0})
#define LESS(a, b) ((mask)((a) < (b)))
#define AT_MOST(a, b) ((mask)((a) <= (b)))
#define EQUAL(a, b) ((mask)((a) == (b)))
#define NEGATIVE(m) ((mask)((m) < 0))
#define SAME(m, n) ((mask)((m) == (n)))
INLINE mask bits(real x) { return (mask)x; }
INLINE real from_bits(mask m) { return (real)m; }
INLINE real choose(mask m, real a, real b) { return (real)(((mask)a & m) | ((mask)b & ~m)); }
INLINE real only(mask m, real a) { return (real)((mask)a & m); }
INLINE int any(mask m) {
    long long all = 0;
    for (int l = 0; l < LANES; l++) all |= m[l];
    return all != 0;
}
INLINE real root(real x) {
    real r;
    for (int l = 0; l < LANES; l++) r[l] = __builtin_sqrt(x[l]);
    return r;
}
#else
#include <math.h>
#include <string.h>
typedef double real;
typedef long long mask;
#define LANE(v, l) (*((void)(l), &(v)))
#define ALL(x) ((real)(x))
#define ALL_BITS(m) ((mask)(m))
#define LESS(a, b) (-(mask)((a) < (b)))
#define AT_MOST(a, b) (-(mask)((a) <= (b)))
#define EQUAL(a, b) (-(mask)((a) == (b)))
#define NEGATIVE(m) (-(mask)((m) < 0))
#define SAME(m, n) (-(mask)((m) == (n)))
INLINE mask bits(real x) {
    mask m;
    memcpy(&m, &x, sizeof m);
    return m;
}
INLINE real from_bits(mask m) {
    real x;
    memcpy(&x, &m, sizeof x);
    return x;
}
INLINE real choose(mask m, real a, real b) { return m ? a : b; }
INLINE real only(mask m, real a) { return m ? a : 0.0; }
INLINE int any(mask m) { return m != 0; }
INLINE real root(real x) { return sqrt(x); }
#endif

#define SIGN (-0x7fffffffffffffffLL - 1)
#define HUGE_REAL ALL(__builtin_inf())
#define NOT_A_REAL ALL(__builtin_nan(""))
#define ROUNDER 6755399441055744.0 /* 1.5 * 2^52: added and subtracted it rounds, and the low bits hold the integer */

INLINE real magnitude(real x) { return from_bits(bits(x) & ~SIGN); }
INLINE real with_sign(real x, real sign) { return from_bits((bits(x) & ~SIGN) | (bits(sign) & SIGN)); }
INLINE real smaller(real x, real y) { return choose(LESS(x, y) | ~EQUAL(y, y), x, y); }
INLINE real larger(real x, real y) { return choose(LESS(y, x) | ~EQUAL(y, y), x, y); }
INLINE real truth(mask m) { return only(m, ALL(1.0)); }
INLINE real sign_of(real x) { return choose(EQUAL(x, ALL(0.0)) | ~EQUAL(x, x), x, with_sign(ALL(1.0), x)); }

/* Integers below 2^51 in size, as bits and as numbers. */
INLINE mask integer_of(real rounded) { return bits(rounded + ROUNDER) - bits(ALL(ROUNDER)); }
INLINE real number_of(mask integer) { return from_bits(integer + bits(ALL(ROUNDER))) - ROUNDER; }
INLINE real nearest(real x) { return (x + ROUNDER) - ROUNDER; }

/* The largest integer up to x. */
INLINE real floor_of(real x) {
    real n = nearest(x);
    n = n - only(LESS(x, n), ALL(1.0));
    return choose(LESS(magnitude(x), ALL(2251799813685248.0)), with_sign(n, x), x);
}

/* sin and cos of x, and the remainder in [-pi/4, pi/4] as a sum of two numbers. */
INLINE void waves(real x, real *sine, real *cosine) {
    const real n = nearest(x * 0.6366197723675814);
    const mask quarter = integer_of(n);
    const real a = x - n * 1.5707963267341256, b = n * 6.077100506303966e-11, ab = a - b;
    const real c3 = n * 2.0222662487959506e-21, r = ab - c3, low = ((ab - r) - c3) + ((a - ab) - b), z = r * r;
    const real s = z * (-0.16666666666666666 + z * (0.008333333333330946 + z * (-0.0001984126983675497 +
                   z * (2.755731610068303e-06 + z * (-2.5051131455427946e-08 + z * 1.591810123027412e-10)))));
    const real c = z * z * (0.041666666666666664 + z * (-0.0013888888888887395 + z * (2.4801587298763433e-05 +
                   z * (-2.7557317270560326e-07 + z * (2.0876146024689747e-09 + z * -1.1382614868556325e-11)))));
    const real half = 0.5 * z, one = 1.0 - half;
    const real sr = r + (r * s + low * one), cr = one + (((1.0 - one) - half) + (c - r * low));
    const mask odd = NEGATIVE(quarter << 63), second = (quarter << 62) & ALL_BITS(SIGN);
    const mask after = ((quarter + 1) << 62) & ALL_BITS(SIGN);
    const mask valid = LESS(magnitude(x), ALL(1e15));
    *sine = choose(valid, from_bits(bits(choose(odd, cr, sr)) ^ second), NOT_A_REAL);
    *cosine = choose(valid, from_bits(bits(choose(odd, sr, cr)) ^ after), NOT_A_REAL);
}

FUNCTION real real_sin(real x) {
    real s, c;
    waves(x, &s, &c);
    return choose(EQUAL(x, ALL(0.0)), x, s);
}
FUNCTION real real_cos(real x) {
    real s, c;
    waves(x, &s, &c);
    return c;
}
FUNCTION real real_tan(real x) {
    real s, c;
    waves(x, &s, &c);
    return choose(EQUAL(x, ALL(0.0)), x, s / c);
}

/* atan2: the ratio of the smaller to the larger side is turned by pi/4 if it is beyond tan(pi/8). */
FUNCTION real real_atan2(real y, real x) {
    const real a = magnitude(y), b = magnitude(x);
    const mask steep = LESS(b, a), infinite = EQUAL(a, HUGE_REAL) & EQUAL(b, HUGE_REAL);
    const real p = choose(infinite, ALL(1.0), choose(steep, b, a)), q = choose(infinite, ALL(1.0), choose(steep, a, b));
    const mask turned = LESS(0.4142135623730950 * q, p);
    const real numerator = choose(turned, p - q, p), denominator = choose(turned, p + q, q);
    const real u = numerator / choose(EQUAL(denominator, ALL(0.0)), ALL(1.0), denominator), z = u * u;
    const real series = u + u * z * (-0.3333333333333333 + z * (0.19999999999995513 + z * (-0.1428571428466482 +
        z * (0.11111111015117626 + z * (-0.09090904572487347 + z * (0.07692183059894114 + z * (-0.06664509603255386 +
        z * (0.05858132894427922 + z * (-0.05085365922344248 + z * (0.03922923713835943 + z * -0.01917392228554793))))))))));
    /* eighths of the circle before and after, and the direction */
    const mask backward = NEGATIVE(bits(x));
    real eighths = truth(turned);
    eighths = choose(steep, 2.0 - eighths, eighths);
    eighths = choose(backward, 4.0 - eighths, eighths);
    const real angle = from_bits(bits(series) ^ ((steep ^ backward) & ALL_BITS(SIGN)));
    const real sum = eighths * 0.7853981633670628 + (eighths * 3.038550253253096e-11 + angle);
    return with_sign(choose(EQUAL(eighths, ALL(0.0)), angle, sum), y);
}

FUNCTION real real_atan(real x) { return real_atan2(x, ALL(1.0)); }
FUNCTION real real_asin(real x) { return real_atan2(x, root((1.0 - x) * (1.0 + x))); }
FUNCTION real real_acos(real x) { return real_atan2(root((1.0 - x) * (1.0 + x)), x); }

/* 2^k x for an integer k between -2098 and 2098. */
INLINE real scaled(real x, real k) {
    const real first = nearest(0.5 * k), second = k - first;
    return x * from_bits((integer_of(first) + 1023) << 52) * from_bits((integer_of(second) + 1023) << 52);
}

/* x = k log 2 + remainder; exp(remainder) - 1 - remainder, the remainder as a sum of two numbers. */
INLINE real grow(real x, real *k, real *r, real *low) {
    *k = nearest(x * 1.4426950408889634);
    const real a = x - *k * 0.6931471803691238, b = *k * 1.9082149292705877e-10;
    *r = a - b;
    *low = (a - *r) - b;
    const real s = *r, z = s * s;
    return 0.5 * z + z * s * (0.16666666666666669 + s * (0.041666666666666664 + s * (0.008333333333330062 + s * (0.0013888888888886552 + s * (0.00019841269863053618 + s * (2.4801587317144498e-05 + s * (2.7557268459997064e-06 + s * (2.755728296954995e-07 + s * (2.510038549551032e-08 + s * (2.0911236630261545e-09))))))))));
}

FUNCTION real real_exp(real x) {
    real k, r, low;
    const real bounded = smaller(larger(x, ALL(-746.0)), ALL(710.0)); /* NaN becomes a bound: see below */
    const real rest = grow(bounded, &k, &r, &low);
    return choose(EQUAL(x, x), scaled(1.0 + (r + (low + rest)), k), x);
}

FUNCTION real real_expm1(real x) {
    real k, r, low;
    const real bounded = smaller(larger(x, ALL(-60.0)), ALL(710.0));
    const real rest = grow(bounded, &k, &r, &low);
    const real tail = low + (rest + low * r), small = r + tail;
    /* 2^k (1 + small) - 1, with the larger of 2^k and -1 first */
    const real one = scaled(ALL(1.0), -k); /* 2^-k */
    const real sum = choose(LESS(k, ALL(55.0)), (1.0 - one) + small, 1.0 + (small - one));
    const real exact = choose(EQUAL(k, ALL(0.0)), small, scaled(sum, k));
    return choose(EQUAL(x, x) & ~EQUAL(x, ALL(0.0)), exact, x);
}

FUNCTION real real_tanh(real x) {
    /* From 22 on it is 1 to the last digit: smooth steps of contacts and friction are there most of the time. */
    if (!any(~AT_MOST(ALL(22.0), magnitude(x)))) return with_sign(ALL(1.0), x);
    const real e = real_expm1(-2.0 * magnitude(x));
    return with_sign(e / (e + 2.0), x);
}
FUNCTION real real_sinh(real x) {
    const real a = magnitude(x), e = real_expm1(smaller(a, ALL(709.0)));
    const real rest = real_exp(larger(a - 709.0, ALL(0.0)));
    const real size = choose(LESS(a, ALL(709.0)), 0.5 * (e + e / (e + 1.0)), 0.5 * e * rest);
    return choose(EQUAL(x, x), with_sign(size, x), x);
}
FUNCTION real real_cosh(real x) {
    const real a = magnitude(x), e = real_exp(smaller(a, ALL(709.0))), rest = real_exp(larger(a - 709.0, ALL(0.0)));
    return choose(EQUAL(x, x), choose(LESS(a, ALL(709.0)), 0.5 * (e + 1.0 / e), 0.5 * e * rest), x);
}

/* x = 2^k m with m between sqrt(1/2) and sqrt(2); x positive and finite. Returns m - 1. */
INLINE real mantissa(real x, real *k) {
    const mask tiny = LESS(x, ALL(2.2250738585072014e-308));
    const mask b = bits(choose(tiny, x * 18014398509481984.0, x));
    const mask shifted = b + (0x3ff0000000000000LL - 0x3fe6a09e667f3bcdLL);
    const mask exponent = ((shifted >> 52) & ALL_BITS(0x7ffLL)) - 1023;
    *k = number_of(exponent) - only(tiny, ALL(54.0));
    return from_bits(b - (exponent << 52)) - 1.0;
}

#define LOG_SERIES(z) (0.666666666666667 + z * (0.3999999999989938 + z * (0.28571428626031065 + z * (0.2222221112572281 + \
    z * (0.18182889786191042 + z * (0.15331699633543858 + z * 0.14616721179861816))))))

/* The values of log beyond its finite ones. */
INLINE real log_ends(real x, real finite) {
    real r = choose(LESS(x, HUGE_REAL), finite, x);
    r = choose(EQUAL(x, ALL(0.0)), -HUGE_REAL, r);
    return choose(LESS(x, ALL(0.0)), NOT_A_REAL, r);
}

FUNCTION real real_log(real x) {
    real k;
    const real f = mantissa(x, &k), s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    /* log(1 + f) = f - f^2/2 + s (f^2/2 + z L): the large terms are exact */
    const real rest = s * (half + z * LOG_SERIES(z)) + k * 1.9082149292705877e-10;
    return log_ends(x, k * 0.6931471803691238 - ((half - rest) - f));
}

FUNCTION real real_log1p(real x) {
    const real u = 1.0 + x, lost = choose(LESS(ALL(1.0), x), 1.0 - (u - x), x - (u - 1.0));
    const real r = real_log(u) + only(LESS(ALL(0.0), u) & LESS(u, HUGE_REAL), lost / u);
    return choose(EQUAL(u, ALL(1.0)), x, r);
}

/* High part of x with 26 bits. */
INLINE real head(real x) { return from_bits(bits(x) & ALL_BITS(~0x7ffffffLL)); }

/* What a b loses when it is rounded to p. */
INLINE real lost_product(real a, real b, real p) {
    const real ah = head(a), al = a - ah, bh = head(b), bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}

FUNCTION real real_pow(real x, real y) {
    real k, k2, r, low;
    const real base = magnitude(x), f = mantissa(base, &k);
    const real d = 2.0 + f, d_low = f - (d - 2.0), s = f / d, p = s * d;
    const real s_low = ((f - p) - lost_product(s, d, p) - s * d_low) / d, z = s * s;
    /* log x = high + rest */
    const real a = k * 0.6931471803691238, b = 2.0 * s, sum = a + b, part = sum - a;
    const real sum_low = (a - (sum - part)) + (b - part);
    const real tail = sum_low + (2.0 * s_low + s * z * LOG_SERIES(z) + k * 1.9082149292705877e-10);
    const real high = sum + tail, rest = (sum - high) + tail;
    const real w = y * high, w_low = lost_product(y, high, w) + y * rest;
    const real bounded = smaller(larger(w, ALL(-746.0)), ALL(710.0));
    const real growth = grow(bounded, &k2, &r, &low);
    const real correction = low + choose(EQUAL(bounded, w), w_low, ALL(0.0));
    real v = scaled(1.0 + (r + (correction + (growth + correction * (r + growth)))), k2);
    const mask integer = EQUAL(floor_of(y), y), odd = integer & ~EQUAL(2.0 * floor_of(0.5 * y), y);
    const mask up = LESS(ALL(0.0), y);
    v = choose(EQUAL(base, ALL(0.0)), choose(up, ALL(0.0), HUGE_REAL), v);
    v = choose(EQUAL(base, HUGE_REAL), choose(up, HUGE_REAL, ALL(0.0)), v);
    v = from_bits(bits(v) ^ (odd & bits(x) & ALL_BITS(SIGN)));
    v = choose(LESS(x, ALL(0.0)) & LESS(base, HUGE_REAL) & ~integer, NOT_A_REAL, v);
    v = choose(EQUAL(x, x) & EQUAL(y, y), v, x + y);
    const mask one = EQUAL(x, ALL(1.0)) | (EQUAL(base, ALL(1.0)) & EQUAL(magnitude(y), HUGE_REAL));
    return choose(EQUAL(y, ALL(0.0)) | one, ALL(1.0), v);
}
