/* Hortator inside simulation codes: C11, without LibTorch and mpi.h. Fortran programs use the module `hortator`.
 *
 * Every function returns a status. None throws, exits or aborts, except that a collective that lasts longer than the
 * time limit of the run ends the job (HORTATOR_TIMEOUT in the environment; ten minutes by default). Functions marked
 * collective must be called by all ranks of the run in the same order; they return the same status on all of them.
 * Nothing is changed by a call that fails, unless its description says otherwise.
 *
 * Handles are valid from the call that makes them until the run ends, batches until they are freed. A handle that names
 * nothing any more, or another kind of object, is HORTATOR_USAGE. So is a collective call after MPI_Finalize.
 *
 * A run, its models and its buffers are used by one thread at a time: the one that began the run. Calls leave the
 * program's number of OpenMP threads (omp_set_num_threads) as it is. */
#ifndef HORTATOR_H
#define HORTATOR_H

/* NOLINTBEGIN: clang-tidy reads it as C++ */

#include <stdint.h>
#include <hortator/version.hpp> /* HORTATOR_VERSION, and its _MAJOR, _MINOR and _PATCH: macros only */

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header: 10203 for 1.2.3. hortator_version() has the library's. */
#define HORTATOR_VERSION_NUMBER (HORTATOR_VERSION_MAJOR * 10000 + HORTATOR_VERSION_MINOR * 100 + HORTATOR_VERSION_PATCH)

#define HORTATOR_C_API __attribute__((visibility("default")))

typedef struct hortator_run hortator_run;       /* ranks, device, checkpoint, trackers; owns models and buffers */
typedef struct hortator_model hortator_model;   /* network, loss, optimizer and schedule */
typedef struct hortator_batch hortator_batch;   /* arrays of the caller, bound once, used in many calls */
typedef struct hortator_buffer hortator_buffer; /* samples of the simulation so far */

typedef enum hortator_status {
  HORTATOR_OK = 0,
  HORTATOR_FAILED = 1, /* files, memory, MPI: the same call may succeed later */
  HORTATOR_USAGE = 2,  /* settings, arguments or order of calls: the same call fails again */
  HORTATOR_NOTHING = 3 /* no error, and nothing was done: no checkpoint, no time limit, too few samples, a step that was
                        * left out because a number is not finite */
} hortator_status;

/* 0 is not a type: an array without one is refused. */
typedef enum hortator_type {
  HORTATOR_F32 = 1,
  HORTATOR_F64,
  HORTATOR_I32,
  HORTATOR_I64,
  HORTATOR_U8,
  HORTATOR_BOOL,
  HORTATOR_C64,
  HORTATOR_C128,
  HORTATOR_I8
} hortator_type;

typedef enum hortator_role {
  HORTATOR_INPUT,
  HORTATOR_TARGET,
  HORTATOR_OUTPUT,        /* hortator_infer writes it */
  HORTATOR_LOSS_ARGUMENT, /* passed to a TorchScript loss after outputs and targets: masks, weights */
  HORTATOR_PRIORITY       /* one number from 0 for each sample; buffers of type priority keep samples by it */
} hortator_role;

/* How a kept array is distributed over the ranks. */
typedef enum hortator_distribution {
  HORTATOR_EACH, /* each rank has its own; resumes on the same number of ranks only */
  HORTATOR_SAME, /* equal on all ranks; saved once */
  HORTATOR_ROWS  /* slices of one array along its first dimension (in Fortran the last), in the order of the ranks */
} hortator_distribution;

typedef enum hortator_memory {
  HORTATOR_HOST,
  HORTATOR_DEVICE /* memory of the run's device: of OpenACC, OpenMP target, CUDA */
} hortator_memory;

/* An array of the caller. It is borrowed: it must stay where it is as long as a batch or a run refers to it. Set all
 * members, or the whole struct to zero first. */
typedef struct hortator_array {
  const void* data; /* written through only if it is an output, a gradient or a kept array, which must not be const */
  const int64_t* shape;
  const int64_t* stride; /* in elements; NULL: contiguous, the last index fastest */
  int32_t rank;          /* number of dimensions, at most 15; 0: a single number */
  hortator_type type;
  hortator_memory memory; /* where `data` points to; 0: the host */
  void* stream; /* of memory on the device: the cudaStream_t whose earlier work each call follows, and whose later work
                 * follows the call; NULL: the default stream. The host does not wait for the device. */
} hortator_array;

/* For hortator_begin: all ranks of the program. It also starts MPI where the program has not. */
#define HORTATOR_WORLD (-1)

/* The version of the library that the program runs with, as HORTATOR_VERSION_NUMBER. */
HORTATOR_C_API int32_t hortator_version(void);

/* --- runs --- */

/* Begins a run of the ranks of `comm`, a Fortran handle (MPI_Comm_c2f), which is duplicated. On CPUs any thread level
 * of MPI will do. `settings` names a YAML file, which rank 0 reads for all ranks: share/doc/simulations.md lists its
 * keys. Collective over comm. A handle that is not valid is HORTATOR_USAGE on its rank only, while the others wait: no
 * communicator reaches them. HORTATOR_USAGE on all ranks if another run of the job uses the run folder; one of another
 * job is waited for, up to 30 seconds.
 *
 * Until the run ends, SIGUSR1 does not end its ranks, and from the first hortator_should_stop on, neither do the first
 * SIGTERM and the first SIGINT. Handlers that the program has installed stay. Ranks that belong to no run are ended by
 * SIGUSR1, and their job with them, unless they ignore it. */
HORTATOR_C_API hortator_status hortator_begin(int32_t comm, const char* settings, hortator_run** run);

/* Ends the run: completes checkpoints and logs, and frees its models and buffers, whose handles are invalid afterwards,
 * whatever the status. `exit_code` (may be NULL) is what the program should exit with: 0, or 75 if hortator_should_stop
 * has asked it to stop and it can be continued. Signals do what they did before the first run; only SIGUSR1 stays
 * harmless where the run was asked to stop. Call it before MPI_Finalize. Collective. */
HORTATOR_C_API hortator_status hortator_end(hortator_run* run, int32_t* exit_code);

/* The text of this thread's last failure: what (why); hint. Empty if there was none. Valid until the next failure. */
HORTATOR_C_API const char* hortator_last_error(void);

/* Sets `stop` to 1 if all ranks should leave: the job's time is nearly over, or a signal asks for it. The run was then
 * saved, if there was time. Call it between steps. Collective. */
HORTATOR_C_API hortator_status hortator_should_stop(hortator_run* run, int32_t* stop);

/* The seconds until the job's time limit; HORTATOR_NOTHING if it has none. Collective. */
HORTATOR_C_API hortator_status hortator_time_left(hortator_run* run, double* seconds);

/* --- models --- */

/* Makes the model `name` of the settings' section `models`. All ranks get the same weights. A second call with the same
 * name returns the same model. Collective. */
HORTATOR_C_API hortator_status hortator_model_create(hortator_run* run, const char* name, hortator_model** model);

/* --- arrays --- */

/* Makes an empty batch. Its first dimension counts samples. */
HORTATOR_C_API hortator_status hortator_batch_create(hortator_run* run, hortator_batch** batch);

/* Binds an array in its role; several arrays of one role keep their order. No data is copied: each later call reads
 * (writes) what the array holds then. Arrays of another floating-point type than the model's are converted in each
 * call. */
HORTATOR_C_API hortator_status hortator_batch_add(hortator_batch* batch, hortator_role role,
                                                  const hortator_array* array);

/* Frees the batch, not its arrays. NULL is allowed. */
HORTATOR_C_API hortator_status hortator_batch_free(hortator_batch* batch);

/* --- steps --- */

/* One training step on the samples of all ranks: inputs, targets and loss arguments of each rank's batch. All samples
 * weigh the same, however many a rank has; it may have none (settings: `weigh`). `loss` (may be NULL) is the mean over
 * the samples of the ranks that ask for it, before the step.
 *
 * HORTATOR_NOTHING on all ranks, and no parameter is changed, if no rank has samples, or if a loss or a gradient is not
 * finite: NaN in one target of one rank is enough. 100 such steps in a row are HORTATOR_FAILED, as is the first one
 * with `on_nonfinite: fail` in the settings. Collective. */
HORTATOR_C_API hortator_status hortator_train(hortator_model* model, hortator_batch* batch, double* loss);

/* The loss without training, as the mean over the samples of the ranks that ask for it. HORTATOR_NOTHING if no rank has
 * samples. Collective. */
HORTATOR_C_API hortator_status hortator_evaluate(hortator_model* model, hortator_batch* batch, double* loss);

/* Computes the outputs of the batch from its inputs. Local, but for a model with `infer_together` in its settings: the
 * samples of the ranks of a node are then one batch, and the call waits for the other ranks' calls, for the time that
 * the settings allow. */
HORTATOR_C_API hortator_status hortator_infer(hortator_model* model, hortator_batch* batch);

/* Writes the gradient of sum(cotangent * output) with respect to the first input to `gradient`, which has that input's
 * shape; `cotangent` has the first output's. Local. */
HORTATOR_C_API hortator_status hortator_adjoint(hortator_model* model, hortator_batch* batch,
                                                const hortator_array* cotangent, const hortator_array* gradient);

/* Writes the change of an output for a small change of an input along `direction`: the Jacobian times `direction`,
 * which has the input's shape; `tangent` has the output's. `output` and `input` are numbers of the model's outputs and
 * the batch's inputs, from 0. Local. */
HORTATOR_C_API hortator_status hortator_tangent(hortator_model* model, hortator_batch* batch, int32_t output,
                                                int32_t input, const hortator_array* direction,
                                                const hortator_array* tangent);

/* Writes the derivatives of an output with respect to an input to `jacobian`; `output` and `input` as for
 * hortator_tangent. An array of the shape [samples, output..., input...] gets those of each sample; HORTATOR_USAGE if
 * the samples depend on each other. One of the shape [output..., input...], with a dimension more, gets all: each
 * sample's output by all samples' inputs. Local. */
HORTATOR_C_API hortator_status hortator_jacobian(hortator_model* model, hortator_batch* batch, int32_t output,
                                                 int32_t input, const hortator_array* jacobian);

/* --- samples of the simulation --- */

/* Makes the buffer `name` of the settings' section `buffers`, or returns the one that there is. Collective. */
HORTATOR_C_API hortator_status hortator_buffer_create(hortator_run* run, const char* name, hortator_buffer** buffer);

/* Copies the batch's samples (inputs, targets and loss arguments) into this rank's part. Never waits. The first call
 * decides the shapes and types of samples. A buffer with statistics leaves out a batch whose first input or target has
 * a number that is not finite (HORTATOR_NOTHING), which would spoil them for good. Local. */
HORTATOR_C_API hortator_status hortator_buffer_put(hortator_buffer* buffer, hortator_batch* batch);

/* Sets `count` to the number of samples that this rank's part holds now. Local. */
HORTATOR_C_API hortator_status hortator_buffer_count(const hortator_buffer* buffer, int64_t* count);

/* `steps` training steps, each on batch_size random samples of each rank's part. `loss` (may be NULL): of the last
 * step. HORTATOR_NOTHING if some rank has fewer than min_samples, or if all steps were left out because a number is not
 * finite. Steps before a failing one remain. Collective. */
HORTATOR_C_API hortator_status hortator_buffer_train(hortator_buffer* buffer, hortator_model* model, int64_t steps,
                                                     double* loss);

/* --- ranks that simulate and ranks that train: two runs, each of a part of the ranks --- */

/* Moves the samples of the buffers `from` to the buffers `to` of other ranks, in equal parts; a rank may pass NULL for
 * either. `to` is a ring or a reservoir. HORTATOR_NOTHING: there were none. Waits for all ranks of `comm`, a Fortran
 * handle that contains both runs, without a time limit. Save both runs after the same call: buffers that have moved
 * samples a different number of times are an error. Collective over comm. */
HORTATOR_C_API hortator_status hortator_share_samples(int32_t comm, hortator_buffer* from, hortator_buffer* to);

/* Copies the weights of the model `from` to the models `to` of other ranks; a rank may pass NULL for either. Collective
 * over comm. */
HORTATOR_C_API hortator_status hortator_share_weights(int32_t comm, hortator_model* from, hortator_model* to);

/* --- state --- */

/* Saves and restores an array of the simulation, in the host's memory, with each checkpoint, in place. `name` is its
 * name there; `distribution` says which ranks have which part of it. Call it before hortator_resume. Collective. */
HORTATOR_C_API hortator_status hortator_keep(hortator_run* run, const char* name, const hortator_array* array,
                                             hortator_distribution distribution);

/* Saves models, optimizers, schedules, buffers, random numbers and kept arrays: complete, or not at all. `every`: the
 * seconds between two saves; a call before they are over does nothing; 0: saves now. `saved` (may be NULL) is 1 if it
 * has saved. A model whose parameters are not finite is HORTATOR_FAILED, and the checkpoint before it stays. Call it
 * between steps. Collective. */
HORTATOR_C_API hortator_status hortator_save(hortator_run* run, double every, int32_t* saved);

/* Restores the last checkpoint, after all models, buffers and kept arrays were made. HORTATOR_NOTHING: there is none,
 * and the run starts from scratch. A damaged checkpoint is reported and the one before is used. Collective. */
HORTATOR_C_API hortator_status hortator_resume(hortator_run* run);

/* Restores the last checkpoint as hortator_resume does, but kept arrays and buffers that the checkpoint does not have,
 * or has in another shape, keep what they hold. `left_out` (may be NULL) is their number; rank 0 logs their names.
 * Models must be those of the checkpoint. `resume: partly` in the settings' section `checkpoints` lets hortator_resume
 * do the same. Collective. */
HORTATOR_C_API hortator_status hortator_resume_partly(hortator_run* run, int32_t* left_out);

/* Writes a model's weights to the folder `dir`, as safetensors. A name that ends with `.pt2`, of a model of the type
 * `exported`, is a file: the program with these weights, which torch.export.load reads. Collective. */
HORTATOR_C_API hortator_status hortator_export(hortator_model* model, const char* dir);

/* Gives `value` to the trackers. Only rank 0's are kept. Values with different names make up one row; a `name` that the
 * row has already begins the next one. Rows are counted. A row is written when the next one begins, and by
 * hortator_should_stop, hortator_save and hortator_end. The names `step` and `time` are the trackers'. Local. */
HORTATOR_C_API hortator_status hortator_log(hortator_run* run, const char* name, double value);

/* Gives `value` to the trackers as hortator_log() does, in the row of this `step` of the simulation, which is at least
 * 0. `name` is the column. Local. */
HORTATOR_C_API hortator_status hortator_log_step(hortator_run* run, int64_t step, const char* name, double value);

/* For bindings to other languages: stores `text` as this thread's last failure and returns `status`. */
HORTATOR_C_API hortator_status hortator_report(hortator_status status, const char* text);

/* For a program that cannot continue: prints this thread's last failure with the rank and its host, and writes it to
 * failure.json in the run folder. Stop the program next: the ranks of its runs are ended as well. */
HORTATOR_C_API void hortator_print_failure(void);

#ifdef __cplusplus
}
#endif
/* NOLINTEND */

#endif
