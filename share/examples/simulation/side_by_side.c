/* A solver and the training of its surrogate on different ranks.
 *
 * The last rank trains, the others solve, each part with a run of its own. Every few steps the solvers give their
 * samples to the trainer and get its weights: between two such moments all ranks work at the same time. At the end the
 * solvers compare the surrogate with the exact term. */
#include <hortator/hortator.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { cells = 512, exchanges = 40, steps_between = 5, training_steps = 100 };

static float state[cells][2]; /* position and speed of a pendulum in each cell */
static float force[cells][1];
static float estimate[cells][1];

static void require(hortator_status status) {
  if (status == HORTATOR_OK || status == HORTATOR_NOTHING) return;
  fprintf(stderr, "side_by_side: %s\n", hortator_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void add(hortator_batch* batch, hortator_role role, float* data, int64_t columns) {
  const int64_t shape[] = {cells, columns};
  const hortator_array array = {.data = data, .shape = shape, .rank = 2, .type = HORTATOR_F32};
  require(hortator_batch_add(batch, role, &array));
}

static float exact_force(const float cell[2]) { return -sinf(3 * cell[0]) - 0.2F * cell[1] * fabsf(cell[1]); }

static void compute_force(void) {
  for (int i = 0; i < cells; ++i) force[i][0] = exact_force(state[i]);
}

static void advance(void) {
  for (int i = 0; i < cells; ++i) {
    state[i][1] += 0.05F * force[i][0];
    state[i][0] += 0.05F * state[i][1];
  }
}

/* Whether the program is to stop, which all ranks must learn: a run's own answer reaches only its ranks. */
static int all_stop(hortator_run* run) {
  int32_t stop = 0;
  require(hortator_should_stop(run, &stop));
  MPI_Allreduce(MPI_IN_PLACE, &stop, 1, MPI_INT32_T, MPI_MAX, MPI_COMM_WORLD);
  return stop;
}

static void solve(hortator_run* run, hortator_model* model, int rank, int solvers, int64_t* exchange) {
  hortator_buffer* outbox = NULL;
  hortator_batch* batch = NULL;
  require(hortator_buffer_create(run, "outbox", &outbox));
  require(hortator_batch_create(run, &batch));
  add(batch, HORTATOR_INPUT, &state[0][0], 2);
  add(batch, HORTATOR_TARGET, &force[0][0], 1);
  add(batch, HORTATOR_OUTPUT, &estimate[0][0], 1);
  for (int i = 0; i < cells; ++i) state[i][0] = 2 * sinf((float)(i + cells * rank));
  const int64_t shape[] = {cells, 2};
  const hortator_array kept = {.data = state, .shape = shape, .rank = 2, .type = HORTATOR_F32};
  require(hortator_keep(run, "state", &kept, HORTATOR_EACH));
  require(hortator_resume(run));
  const int first = (int)*exchange; /* 0, or that of the checkpoint */
  for (; *exchange < exchanges && !all_stop(run); ++*exchange) {
    for (int step = 0; step < steps_between; ++step) {
      compute_force();
      require(hortator_buffer_put(outbox, batch)); /* the state and its force */
      advance();
    }
    require(hortator_share_samples(HORTATOR_WORLD, outbox, NULL));
    require(hortator_share_weights(HORTATOR_WORLD, NULL, model));
  }
  compute_force();
  require(hortator_infer(model, batch));
  double sums[] = {0, 0};
  for (int i = 0; i < cells; ++i) {
    const double error = estimate[i][0] - force[i][0];
    sums[0] += error * error;
    sums[1] += (double)force[i][0] * force[i][0];
  }
  if (rank == 0) {
    printf("solvers %d  exchanges %d  relative error of the surrogate %.3f\n", solvers, (int)*exchange - first,
           sqrt(sums[0] / sums[1]));
  }
  require(hortator_batch_free(batch));
}

static void train(hortator_run* run, hortator_model* model, int64_t* exchange) {
  hortator_buffer* samples = NULL;
  require(hortator_buffer_create(run, "samples", &samples));
  require(hortator_resume(run));
  for (; *exchange < exchanges && !all_stop(run); ++*exchange) {
    require(hortator_buffer_train(samples, model, training_steps, NULL));
    require(hortator_share_samples(HORTATOR_WORLD, NULL, samples));
    require(hortator_share_weights(HORTATOR_WORLD, model, NULL));
  }
}

int main(int argc, char** argv) {
  int rank = 0;
  int size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 3 || size < 2) {
    if (rank == 0) fprintf(stderr, "usage, on at least two ranks: side_by_side SOLVERS.yaml TRAINERS.yaml\n");
    MPI_Finalize();
    return 2;
  }
  const int trains = rank == size - 1;
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, trains, rank, &part);

  hortator_run* run = NULL;
  hortator_model* model = NULL;
  int64_t exchange = 0;
  const hortator_array kept = {.data = &exchange, .rank = 0, .type = HORTATOR_I64};
  require(hortator_begin(MPI_Comm_c2f(part), argv[1 + trains], &run));
  require(hortator_model_create(run, "force", &model));
  require(hortator_keep(run, "exchange", &kept, HORTATOR_SAME));
  if (trains) {
    train(run, model, &exchange);
  } else {
    solve(run, model, rank, size - 1, &exchange);
  }
  require(hortator_save(run, 0, NULL)); /* both runs after the same exchange */
  int32_t exit_code = 0;
  require(hortator_end(run, &exit_code));
  MPI_Comm_free(&part);
  MPI_Finalize();
  return exit_code;
}
