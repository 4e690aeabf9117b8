/* A solver whose expensive term is replaced by a surrogate that it trains itself.
 *
 * Each cell's reaction rate is the root of an equation, found by bisection. For the first steps the solver computes it,
 * trains a network on what it has computed, and then uses the network. Reports the surrogate's error and speed-up. */
#include <hortator/hortator.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { cells = 4096, exact_steps = 40, surrogate_steps = 40, inputs = 2 };

static float state[cells][inputs]; /* temperature and concentration */
static float rate[cells][1];       /* the exact term */
static float estimate[cells][1];   /* the surrogate's */

/* Ends the job with the text of a failure. A solver that can do without Hortator would return instead. */
static void require(hortator_status status) {
  if (status == HORTATOR_OK || status == HORTATOR_NOTHING) return;
  fprintf(stderr, "surrogate: %s\n", hortator_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The rate r with r = c exp(-1 / (t + 0.2 r)), by bisection. */
static float exact_rate(const float cell[inputs]) {
  double low = 0;
  double high = cell[1];
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    if (cell[1] * exp(-1 / (cell[0] + 0.2 * middle)) > middle) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return (float)((low + high) / 2);
}

static void begin_state(int rank) {
  for (int i = 0; i < cells; ++i) {
    const double x = (double)i / cells;
    state[i][0] = (float)(0.6 + 0.3 * sin(6.283 * (x + 0.1 * rank)));
    state[i][1] = (float)(0.5 + 0.4 * cos(12.566 * x + rank));
  }
}

static void advance(float term[cells][1]) {
  for (int i = 0; i < cells; ++i) {
    state[i][0] += 0.02F * (term[i][0] - 0.3F * (state[i][0] - 0.6F));
    state[i][1] += 0.02F * (0.5F - state[i][1] - term[i][0]);
  }
}

static void add(hortator_batch* batch, hortator_role role, float* data, int64_t columns) {
  const int64_t shape[] = {cells, columns};
  const hortator_array array = {.data = data, .shape = shape, .rank = 2, .type = HORTATOR_F32};
  require(hortator_batch_add(batch, role, &array));
}

static void compute_exact(void) {
  for (int i = 0; i < cells; ++i) rate[i][0] = exact_rate(state[i]);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: surrogate SETTINGS.yaml\n");
    return 2;
  }
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  begin_state(rank);

  hortator_run* run = NULL;
  hortator_model* model = NULL;
  hortator_buffer* samples = NULL;
  hortator_batch* batch = NULL;
  require(hortator_begin(MPI_Comm_c2f(MPI_COMM_WORLD), argv[1], &run));
  require(hortator_model_create(run, "rate", &model));
  require(hortator_buffer_create(run, "samples", &samples));
  require(hortator_batch_create(run, &batch));
  add(batch, HORTATOR_INPUT, &state[0][0], inputs);
  add(batch, HORTATOR_TARGET, &rate[0][0], 1);
  add(batch, HORTATOR_OUTPUT, &estimate[0][0], 1);

  double loss = 0;
  double exact_seconds = 0;
  for (int step = 0; step < exact_steps; ++step) {
    const double start = MPI_Wtime();
    compute_exact();
    exact_seconds += (MPI_Wtime() - start) / exact_steps;
    require(hortator_buffer_put(samples, batch));
    require(hortator_buffer_train(samples, model, 25, &loss));
    advance(rate);
  }

  double surrogate_seconds = 0;
  double largest = 0;
  double size = 0;
  for (int step = 0; step < surrogate_steps; ++step) {
    const double start = MPI_Wtime();
    require(hortator_infer(model, batch));
    surrogate_seconds += (MPI_Wtime() - start) / surrogate_steps;
    compute_exact(); /* for the report only */
    for (int i = 0; i < cells; ++i) {
      largest = fmax(largest, fabs((double)(estimate[i][0] - rate[i][0])));
      size = fmax(size, fabs((double)rate[i][0]));
    }
    advance(estimate);
  }
  double errors[] = {largest, size};
  MPI_Allreduce(MPI_IN_PLACE, errors, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("loss %.1e  largest error %.1e of %.2f  speed-up of the term %.1f\n", loss, errors[0], errors[1],
           exact_seconds / surrogate_seconds);
  }

  int32_t exit_code = 0;
  require(hortator_batch_free(batch));
  require(hortator_end(run, &exit_code));
  MPI_Finalize();
  return exit_code;
}
