/* A program that finalises MPI before its run has ended: each call is a status, and none ends the program. */
#include <hortator/hortator.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int wrong = 0;

static void expect(hortator_status found, hortator_status wanted, const char* call, const char* text) {
  if (found == wanted && strstr(hortator_last_error(), text) != NULL) return;
  fprintf(stderr, "%s: status %d: %s\n", call, (int)found, hortator_last_error());
  ++wrong;
}

int main(int argc, char** argv) {
  float input[4][3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {1, 0, 1}};
  float output[4][2] = {{0}};
  const int64_t in[] = {4, 3};
  const int64_t out[] = {4, 2};
  const hortator_array inputs = {.data = input, .shape = in, .rank = 2, .type = HORTATOR_F32};
  const hortator_array outputs = {.data = output, .shape = out, .rank = 2, .type = HORTATOR_F32};
  hortator_run* run = NULL;
  hortator_run* next = NULL;
  hortator_model* model = NULL;
  hortator_batch* batch = NULL;
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    FILE* file = fopen("after.yaml", "w");
    fputs("cpu: true\nmodels: {line: {type: mlp, layers: [3, 2], infer_together: {}, optimizer: {type: sgd, lr: 0.1}}}\n", file);
    fclose(file);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  expect(hortator_begin(MPI_Comm_c2f(MPI_COMM_WORLD), "after.yaml", &run), HORTATOR_OK, "begin", "");
  expect(hortator_model_create(run, "line", &model), HORTATOR_OK, "create", "");
  expect(hortator_batch_create(run, &batch), HORTATOR_OK, "batch", "");
  expect(hortator_batch_add(batch, HORTATOR_INPUT, &inputs), HORTATOR_OK, "add", "");
  expect(hortator_batch_add(batch, HORTATOR_TARGET, &outputs), HORTATOR_OK, "add", "");
  expect(hortator_batch_add(batch, HORTATOR_OUTPUT, &outputs), HORTATOR_OK, "add", "");
  expect(hortator_train(model, batch, NULL), HORTATOR_OK, "train", "");
  MPI_Finalize();
  expect(hortator_infer(model, batch), HORTATOR_OK, "infer", "");
  expect(hortator_train(model, batch, NULL), HORTATOR_USAGE, "train", "without MPI");
  expect(hortator_save(run, 0, NULL), HORTATOR_USAGE, "save", "without MPI");
  expect(hortator_end(run, NULL), HORTATOR_USAGE, "end", "hortator_end was called after MPI_Finalize");
  expect(hortator_end(run, NULL), HORTATOR_USAGE, "end", "names nothing");
  expect(hortator_begin(HORTATOR_WORLD, "after.yaml", &next), HORTATOR_FAILED, "begin", "MPI was finalised");
  expect(hortator_batch_free(batch), HORTATOR_OK, "free", "");
  return wrong;
}
