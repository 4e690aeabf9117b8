/* Fortran's descriptors of arrays as hortator_array. Compiled with the header of the Fortran compiler that is used,
 * because descriptors differ between compilers. */
#include "descriptors.h"

enum { max_dims = 15, reversed = 0, as_written = 1 };

/* An array as the C interface takes it. */
typedef struct view {
  hortator_array array;
  int64_t shape[max_dims];
  int64_t stride[max_dims];
} view;

static int type_of(const CFI_cdesc_t* descriptor, hortator_type* type) {
  switch (descriptor->type) {
    case CFI_type_float:
      *type = HORTATOR_F32;
      return 1;
    case CFI_type_double:
      *type = HORTATOR_F64;
      return 1;
    case CFI_type_int32_t:
      *type = HORTATOR_I32;
      return 1;
    case CFI_type_int64_t:
      *type = HORTATOR_I64;
      return 1;
    case CFI_type_int8_t:
      *type = HORTATOR_I8;
      return 1;
    case CFI_type_Bool:
      *type = HORTATOR_BOOL;
      return descriptor->elem_len == 1;
    case CFI_type_float_Complex:
      *type = HORTATOR_C64;
      return 1;
    case CFI_type_double_Complex:
      *type = HORTATOR_C128;
      return 1;
    default:
      return 0;
  }
}

static hortator_status refuse_type(void) {
  return hortator_report(HORTATOR_USAGE,
                         "An array has a type that Hortator does not take (LibTorch must have the same). Use real or "
                         "complex numbers of 32 or 64 bits a part, integers of 8, 32 or 64 bits, or logical(c_bool)");
}

static hortator_status refuse_stride(void) {
  return hortator_report(
      HORTATOR_USAGE,
      "The elements of an array are not a whole number of elements apart (a component of an array of "
      "a derived type?). Copy them to an array of their own");
}

static hortator_status refuse_unallocated(void) {
  return hortator_report(HORTATOR_USAGE,
                         "An array is not allocated, or is a pointer that is not associated (the call borrows it). "
                         "Allocate it before it is bound");
}

static hortator_status refuse_order(void) {
  return hortator_report(HORTATOR_USAGE,
                         "An array has an unknown order of its dimensions. Use HORTATOR_REVERSED, the default, or "
                         "HORTATOR_AS_WRITTEN");
}

/* Reverses the dimensions unless the order is as_written: Fortran's first dimension is the fastest, LibTorch's last. */
static hortator_status view_of(const CFI_cdesc_t* descriptor, int order, view* result) {
  const int dims = descriptor->rank;
  if (order != reversed && order != as_written) return refuse_order();
  if (descriptor->base_addr == NULL) return refuse_unallocated();
  if (!type_of(descriptor, &result->array.type)) return refuse_type();
  for (int i = 0; i < dims; ++i) {
    const int from = order == as_written ? i : dims - 1 - i;
    const CFI_index_t bytes = descriptor->dim[from].sm;
    if (bytes % (CFI_index_t)descriptor->elem_len != 0) return refuse_stride();
    result->shape[i] = descriptor->dim[from].extent;
    result->stride[i] = bytes / (CFI_index_t)descriptor->elem_len;
  }
  result->array.data = descriptor->base_addr;
  result->array.shape = result->shape;
  result->array.stride = result->stride;
  result->array.rank = dims;
  result->array.memory = HORTATOR_HOST;
  result->array.stream = NULL;
  return HORTATOR_OK;
}

static hortator_status view_on(const CFI_cdesc_t* descriptor, int order, hortator_memory memory, intptr_t stream,
                               view* result) {
  const hortator_status status = view_of(descriptor, order, result);
  if (status != HORTATOR_OK) return status;
  result->array.memory = memory;
  result->array.stream = (void*)stream;
  return HORTATOR_OK;
}

static hortator_status views_of(const CFI_cdesc_t* first, const CFI_cdesc_t* second, int order, hortator_memory memory,
                                intptr_t stream, view* first_view, view* second_view) {
  const hortator_status status = view_on(first, order, memory, stream, first_view);
  return status == HORTATOR_OK ? view_on(second, order, memory, stream, second_view) : status;
}

hortator_status hortator_batch_add_f(hortator_batch* batch, hortator_role role, const CFI_cdesc_t* array, int order,
                                     hortator_memory memory, intptr_t stream) {
  view shown;
  const hortator_status status = view_on(array, order, memory, stream, &shown);
  return status == HORTATOR_OK ? hortator_batch_add(batch, role, &shown.array) : status;
}

hortator_status hortator_batch_add_constant_f(hortator_batch* batch, hortator_role role, const CFI_cdesc_t* array,
                                              int order, hortator_memory memory, intptr_t stream) {
  if (role == HORTATOR_OUTPUT) {
    return hortator_report(HORTATOR_USAGE,
                           "add_constant got the role HORTATOR_OUTPUT (hortator_infer writes outputs). Bind the array "
                           "with add");
  }
  return hortator_batch_add_f(batch, role, array, order, memory, stream);
}

/* Collective: a rank whose array cannot be shown takes part with one of an unknown type, so that all ranks fail. */
hortator_status hortator_keep_f(hortator_run* run, const char* name, const CFI_cdesc_t* array,
                                hortator_distribution distribution) {
  view shown;
  const hortator_array unknown = {.type = (hortator_type)-1};
  if (view_of(array, 0, &shown) == HORTATOR_OK) return hortator_keep(run, name, &shown.array, distribution);
  const hortator_status status = hortator_keep(run, name, &unknown, distribution);
  view_of(array, 0, &shown); /* the text of this rank's own reason */
  return status;
}

hortator_status hortator_adjoint_f(hortator_model* model, hortator_batch* batch, const CFI_cdesc_t* cotangent,
                                   const CFI_cdesc_t* gradient, int order, hortator_memory memory, intptr_t stream) {
  view weights;
  view result;
  const hortator_status status = views_of(cotangent, gradient, order, memory, stream, &weights, &result);
  return status == HORTATOR_OK ? hortator_adjoint(model, batch, &weights.array, &result.array) : status;
}

hortator_status hortator_tangent_f(hortator_model* model, hortator_batch* batch, int32_t output, int32_t input,
                                   const CFI_cdesc_t* direction, const CFI_cdesc_t* tangent, int order,
                                   hortator_memory memory, intptr_t stream) {
  view along;
  view result;
  const hortator_status status = views_of(direction, tangent, order, memory, stream, &along, &result);
  if (status != HORTATOR_OK) return status;
  return hortator_tangent(model, batch, output, input, &along.array, &result.array);
}

hortator_status hortator_jacobian_f(hortator_model* model, hortator_batch* batch, int32_t output, int32_t input,
                                    const CFI_cdesc_t* jacobian, int order, hortator_memory memory, intptr_t stream) {
  view result;
  const hortator_status status = view_on(jacobian, order, memory, stream, &result);
  return status == HORTATOR_OK ? hortator_jacobian(model, batch, output, input, &result.array) : status;
}
