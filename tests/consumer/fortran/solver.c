/* The C interface without MPI's and LibTorch's headers. */
#include <hortator/hortator.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  hortator_run* run = NULL;
  hortator_model* model = NULL;
  hortator_batch* batch = NULL;
  float input[4][3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {1, 0, 1}};
  float output[4][2] = {{0}};
  const int64_t in[] = {4, 3};
  const int64_t out[] = {4, 2};
  const hortator_array inputs = {.data = input, .shape = in, .rank = 2, .type = HORTATOR_F32};
  const hortator_array outputs = {.data = output, .shape = out, .rank = 2, .type = HORTATOR_F32};
  int bad = hortator_begin(HORTATOR_WORLD, "nowhere.yaml", &run) != HORTATOR_USAGE;
  bad += strstr(hortator_last_error(), "cannot be read") == NULL;
  bad += hortator_begin(HORTATOR_WORLD, "sim.yaml", &run) != HORTATOR_OK;
  bad += hortator_model_create(run, "line", &model) != HORTATOR_OK;
  bad += hortator_batch_create(run, &batch) != HORTATOR_OK;
  bad += hortator_batch_add(batch, HORTATOR_INPUT, &inputs) != HORTATOR_OK;
  bad += hortator_batch_add(batch, HORTATOR_OUTPUT, &outputs) != HORTATOR_OK;
  bad += hortator_infer(model, batch) != HORTATOR_OK;
  bad += output[0][0] == 0;
  bad += hortator_batch_free(batch) != HORTATOR_OK;
  bad += hortator_end(run, NULL) != HORTATOR_OK;
  printf(bad == 0 ? "solver: all is well\n" : "solver: %s\n", hortator_last_error());
  return bad;
}
