/* A function that CasADi generated into the text before this one, evaluated over rows.

   The text before defines `rows_function`, its sizes N_IN and N_OUT, casadi_int and casadi_real. Argument i of row k is
   at in[i] + k * in_step[i] (a step of 0: one value for all rows), result i goes to out[i] + k * out_step[i]. Returns 0,
   or 1 without memory for the work space. Nothing here is static or global: any number of threads may call it. */

#include <stdlib.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

EXPORT int designopt_rows(casadi_int n, const double *const *in, const casadi_int *in_step, double *const *out,
                          const casadi_int *out_step) {
    casadi_int n_arg, n_res, n_iw, n_w;
    rows_function_work(&n_arg, &n_res, &n_iw, &n_w);
    const casadi_real **arg = malloc((size_t)(n_arg + 1) * sizeof *arg);
    casadi_real **res = malloc((size_t)(n_res + 1) * sizeof *res);
    casadi_int *iw = malloc((size_t)(n_iw + 1) * sizeof *iw);
    casadi_real *w = malloc((size_t)(n_w + 1) * sizeof *w);
    int failed = !(arg && res && iw && w);
    for (casadi_int k = 0; k < n && !failed; k++) {
        for (int i = 0; i < N_IN; i++) arg[i] = in[i] + k * in_step[i];
        for (int i = 0; i < N_OUT; i++) res[i] = out[i] + k * out_step[i];
        rows_function(arg, res, iw, w, 0);
    }
    free(arg);
    free(res);
    free(iw);
    free(w);
    return failed;
}
