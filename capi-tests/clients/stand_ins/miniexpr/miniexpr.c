/* See miniexpr.h. */
#include "miniexpr_numpy.h"

static int none(int *error, me_expr **out) {
    *error = 0;
    *out = NULL;
    return ME_COMPILE_ERR_PARSE;
}

int me_compile(const char *expression, const me_variable *variables, int nvariables, me_dtype dtype, int *error, me_expr **out) {
    (void)expression, (void)variables, (void)nvariables, (void)dtype;
    return none(error, out);
}

int me_compile_nd_jit(const char *expression, const me_variable *variables, int nvariables, me_dtype dtype, int ndim,
                      const int64_t *shape, const int32_t *chunkshape, const int32_t *blockshape, int jit_mode, int *error,
                      me_expr **out) {
    (void)expression, (void)variables, (void)nvariables, (void)dtype, (void)ndim;
    (void)shape, (void)chunkshape, (void)blockshape, (void)jit_mode;
    return none(error, out);
}

int me_eval(const me_expr *expr, const void **inputs, int ninputs, void *output, int nitems, const me_eval_params *params) {
    (void)expr, (void)inputs, (void)ninputs, (void)output, (void)nitems, (void)params;
    return -1;
}

int me_eval_nd(const me_expr *expr, const void **inputs, int ninputs, void *output, int nitems, int64_t nchunk, int64_t nblock,
               const me_eval_params *params) {
    (void)expr, (void)inputs, (void)ninputs, (void)output, (void)nitems, (void)nchunk, (void)nblock, (void)params;
    return -1;
}

int me_nd_valid_nitems(const me_expr *expr, int64_t nchunk, int64_t nblock, int64_t *nitems) {
    (void)expr, (void)nchunk, (void)nblock, (void)nitems;
    return -1;
}

me_dtype me_get_dtype(const me_expr *expr) {
    (void)expr;
    return ME_AUTO;
}

size_t me_get_itemsize(const me_expr *expr) {
    (void)expr;
    return 0;
}

void me_print(const me_expr *expr) {
    (void)expr;
}

void me_free(me_expr *expr) {
    (void)expr;
}

int me_expr_has_jit_kernel(const me_expr *expr) {
    (void)expr;
    return 0;
}

void me_register_wasm_jit_helpers(me_wasm_jit_instantiate_helper instantiate, me_wasm_jit_free_helper free) {
    (void)instantiate, (void)free;
}

/* NumPy's numbers of types: integers by the names of C, floats, complex numbers. */
me_dtype me_dtype_from_numpy(int number) {
    static const me_dtype types[] = {
        ME_BOOL, ME_INT8, ME_UINT8, ME_INT16, ME_UINT16, ME_INT32, ME_UINT32, ME_INT64, ME_UINT64, ME_INT64, ME_UINT64,
        ME_FLOAT32, ME_FLOAT64
    };
    if (number >= 0 && number < (int)(sizeof types / sizeof *types)) {
        return types[number];
    }
    return number == 14 ? ME_COMPLEX64 : number == 15 ? ME_COMPLEX128 : (me_dtype)-1;
}
