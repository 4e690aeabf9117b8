/* What the Fortran module calls beside hortator.h. Not installed. */
#ifndef HORTATOR_FORTRAN_DESCRIPTORS_H
#define HORTATOR_FORTRAN_DESCRIPTORS_H

#include <ISO_Fortran_binding.h>
#include <hortator/hortator.h>

HORTATOR_C_API hortator_status hortator_batch_add_f(hortator_batch* batch, hortator_role role, const CFI_cdesc_t* array,
                                                    int order, hortator_memory memory, intptr_t stream);
HORTATOR_C_API hortator_status hortator_batch_add_constant_f(hortator_batch* batch, hortator_role role,
                                                             const CFI_cdesc_t* array, int order,
                                                             hortator_memory memory, intptr_t stream);
HORTATOR_C_API hortator_status hortator_keep_f(hortator_run* run, const char* name, const CFI_cdesc_t* array,
                                               hortator_distribution distribution);
HORTATOR_C_API hortator_status hortator_adjoint_f(hortator_model* model, hortator_batch* batch,
                                                  const CFI_cdesc_t* cotangent, const CFI_cdesc_t* gradient, int order,
                                                  hortator_memory memory, intptr_t stream);
HORTATOR_C_API hortator_status hortator_tangent_f(hortator_model* model, hortator_batch* batch, int32_t output,
                                                  int32_t input, const CFI_cdesc_t* direction,
                                                  const CFI_cdesc_t* tangent, int order, hortator_memory memory,
                                                  intptr_t stream);
HORTATOR_C_API hortator_status hortator_jacobian_f(hortator_model* model, hortator_batch* batch, int32_t output,
                                                   int32_t input, const CFI_cdesc_t* jacobian, int order,
                                                   hortator_memory memory, intptr_t stream);

#endif
