!> Hortator for Fortran 2018. hortator.h describes each call; here handles are derived types, and arrays of any type and
!> rank are passed as they are, sections with strides included.
!>
!> Every procedure has an optional last argument `status`. Without it, a failure prints its text and stops the program, as
!> with allocate(stat=). With it, other results of a call that fails are what they were, or 0 or false. Procedures marked
!> collective must be called by all ranks of the run in the same order.
module hortator
  use, intrinsic :: iso_c_binding
  implicit none
  private

  integer, parameter, public :: HORTATOR_OK = 0, HORTATOR_FAILED = 1, HORTATOR_USAGE = 2, HORTATOR_NOTHING = 3
  integer, parameter, public :: HORTATOR_INPUT = 0, HORTATOR_TARGET = 1, HORTATOR_OUTPUT = 2, HORTATOR_LOSS_ARGUMENT = 3, &
                                HORTATOR_PRIORITY = 4
  !> How LibTorch sees a(nx, ny, nc, nb): as [nb, nc, ny, nx], what Python would have trained with, or as [nx, ny, nc, nb].
  !> Neither moves data.
  integer, parameter, public :: HORTATOR_REVERSED = 0, HORTATOR_AS_WRITTEN = 1
  integer, parameter, public :: HORTATOR_EACH = 0, HORTATOR_SAME = 1, HORTATOR_ROWS = 2
  integer, parameter, public :: HORTATOR_WORLD = -1

  public :: hortator_run, hortator_model, hortator_batch, hortator_buffer, hortator_last_error
  public :: hortator_share_samples, hortator_share_weights, hortator_version

  !> A run. It is ended by end(), which is collective, not by its finalizer.
  type :: hortator_run
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: begin => run_begin              !< collective over the communicator
    procedure :: end => run_end                  !< collective
    procedure :: should_stop => run_should_stop  !< collective
    procedure :: time_left => run_time_left      !< collective
    procedure :: keep => run_keep                !< collective
    procedure :: save => run_save                !< collective
    procedure :: resume => run_resume                !< collective
    procedure :: resume_partly => run_resume_partly  !< collective
    procedure :: log => run_log
    procedure :: log_step => run_log_step
  end type

  !> A model of the run's settings. It belongs to the run.
  type :: hortator_model
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: create => model_create       !< collective
    procedure :: train => model_train         !< collective
    procedure :: evaluate => model_evaluate   !< collective
    procedure :: infer => model_infer
    procedure :: adjoint => model_adjoint
    procedure :: tangent => model_tangent
    procedure :: jacobian => model_jacobian
    procedure :: export => model_export       !< collective
  end type

  !> Arrays that are bound once and used in many calls. They must have the target attribute, or be allocatable or pointers
  !> that stay allocated, as long as the batch is used. A variable of this type cannot be copied.
  type :: hortator_batch
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: create => batch_create
    procedure :: add => batch_add
    procedure :: add_constant => batch_add_constant
    procedure :: free => batch_free
    procedure, private :: batch_refuse_copy
    generic :: assignment(=) => batch_refuse_copy
    final :: batch_finalize
  end type

  !> A buffer of the run's settings. It belongs to the run.
  type :: hortator_buffer
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: create => buffer_create   !< collective
    procedure :: put => buffer_put
    procedure :: count => buffer_count
    procedure :: train => buffer_train     !< collective
  end type

  interface
    integer(c_int) function c_begin(comm, settings, run) bind(C, name="hortator_begin")
      import :: c_int, c_int32_t, c_char, c_ptr
      integer(c_int32_t), value :: comm
      character(kind=c_char), intent(in) :: settings(*)
      type(c_ptr), intent(inout) :: run
    end function
    integer(c_int) function c_end(run, exit_code) bind(C, name="hortator_end")
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: run
      integer(c_int32_t), intent(inout) :: exit_code  ! a call that fails leaves it as it is
    end function
    integer(c_int) function c_should_stop(run, stop) bind(C, name="hortator_should_stop")
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: run
      integer(c_int32_t), intent(inout) :: stop
    end function
    integer(c_int) function c_time_left(run, seconds) bind(C, name="hortator_time_left")
      import :: c_int, c_double, c_ptr
      type(c_ptr), value :: run
      real(c_double), intent(inout) :: seconds
    end function
    integer(c_int) function c_save(run, every, saved) bind(C, name="hortator_save")
      import :: c_int, c_int32_t, c_double, c_ptr
      type(c_ptr), value :: run
      real(c_double), value :: every
      integer(c_int32_t), intent(inout) :: saved
    end function
    integer(c_int) function c_resume(run) bind(C, name="hortator_resume")
      import :: c_int, c_ptr
      type(c_ptr), value :: run
    end function
    integer(c_int) function c_resume_partly(run, left_out) bind(C, name="hortator_resume_partly")
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: run
      integer(c_int32_t), intent(inout) :: left_out
    end function
    integer(c_int) function c_log_step(run, step, name, number) bind(C, name="hortator_log_step")
      import :: c_int, c_int64_t, c_char, c_double, c_ptr
      type(c_ptr), value :: run
      integer(c_int64_t), value :: step
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), value :: number
    end function
    integer(c_int) function c_log(run, name, number) bind(C, name="hortator_log")
      import :: c_int, c_char, c_double, c_ptr
      type(c_ptr), value :: run
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), value :: number
    end function
    integer(c_int) function c_model_create(run, name, model) bind(C, name="hortator_model_create")
      import :: c_int, c_char, c_ptr
      type(c_ptr), value :: run
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), intent(inout) :: model
    end function
    integer(c_int) function c_batch_create(run, batch) bind(C, name="hortator_batch_create")
      import :: c_int, c_ptr
      type(c_ptr), value :: run
      type(c_ptr), intent(inout) :: batch
    end function
    integer(c_int) function c_batch_free(batch) bind(C, name="hortator_batch_free")
      import :: c_int, c_ptr
      type(c_ptr), value :: batch
    end function
    integer(c_int) function c_train(model, batch, loss) bind(C, name="hortator_train")
      import :: c_int, c_double, c_ptr
      type(c_ptr), value :: model, batch
      real(c_double), optional, intent(inout) :: loss
    end function
    integer(c_int) function c_evaluate(model, batch, loss) bind(C, name="hortator_evaluate")
      import :: c_int, c_double, c_ptr
      type(c_ptr), value :: model, batch
      real(c_double), intent(inout) :: loss
    end function
    integer(c_int) function c_infer(model, batch) bind(C, name="hortator_infer")
      import :: c_int, c_ptr
      type(c_ptr), value :: model, batch
    end function
    integer(c_int) function c_export(model, dir) bind(C, name="hortator_export")
      import :: c_int, c_char, c_ptr
      type(c_ptr), value :: model
      character(kind=c_char), intent(in) :: dir(*)
    end function
    integer(c_int) function c_buffer_create(run, name, buffer) bind(C, name="hortator_buffer_create")
      import :: c_int, c_char, c_ptr
      type(c_ptr), value :: run
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), intent(inout) :: buffer
    end function
    integer(c_int) function c_buffer_put(buffer, batch) bind(C, name="hortator_buffer_put")
      import :: c_int, c_ptr
      type(c_ptr), value :: buffer, batch
    end function
    integer(c_int) function c_buffer_count(buffer, count) bind(C, name="hortator_buffer_count")
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: buffer
      integer(c_int64_t), intent(inout) :: count
    end function
    integer(c_int) function c_buffer_train(buffer, model, steps, loss) bind(C, name="hortator_buffer_train")
      import :: c_int, c_int64_t, c_double, c_ptr
      type(c_ptr), value :: buffer, model
      integer(c_int64_t), value :: steps
      real(c_double), optional, intent(inout) :: loss
    end function
    integer(c_int) function c_share_samples(comm, from, to) bind(C, name="hortator_share_samples")
      import :: c_int, c_int32_t, c_ptr
      integer(c_int32_t), value :: comm
      type(c_ptr), value :: from, to
    end function
    integer(c_int) function c_share_weights(comm, from, to) bind(C, name="hortator_share_weights")
      import :: c_int, c_int32_t, c_ptr
      integer(c_int32_t), value :: comm
      type(c_ptr), value :: from, to
    end function
    type(c_ptr) function c_last_error() bind(C, name="hortator_last_error")
      import :: c_ptr
    end function
    integer(c_size_t) function c_strlen(text) bind(C, name="strlen")
      import :: c_size_t, c_ptr
      type(c_ptr), value :: text
    end function
    integer(c_int) function c_batch_add(batch, role, array, order, memory, stream) bind(C, name="hortator_batch_add_f")
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: batch
      integer(c_int), value :: role, order, memory
      integer(c_intptr_t), value :: stream
      type(*), dimension(..), target, asynchronous, intent(inout) :: array
    end function
    integer(c_int) function c_batch_add_constant(batch, role, array, order, memory, stream) &
      bind(C, name="hortator_batch_add_constant_f")
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: batch
      integer(c_int), value :: role, order, memory
      integer(c_intptr_t), value :: stream
      type(*), dimension(..), target, asynchronous, intent(in) :: array
    end function
    integer(c_int) function c_keep(run, name, array, distribution) bind(C, name="hortator_keep_f")
      import :: c_int, c_char, c_ptr
      type(c_ptr), value :: run
      character(kind=c_char), intent(in) :: name(*)
      type(*), dimension(..), target, asynchronous, intent(inout) :: array
      integer(c_int), value :: distribution
    end function
    integer(c_int) function c_adjoint(model, batch, cotangent, gradient, order, memory, stream) &
      bind(C, name="hortator_adjoint_f")
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: model, batch
      type(*), dimension(..), target, intent(in) :: cotangent
      type(*), dimension(..), target, intent(inout) :: gradient
      integer(c_int), value :: order, memory
      integer(c_intptr_t), value :: stream
    end function
    integer(c_int) function c_tangent(model, batch, output, input, direction, tangent, order, memory, stream) &
      bind(C, name="hortator_tangent_f")
      import :: c_int, c_int32_t, c_intptr_t, c_ptr
      type(c_ptr), value :: model, batch
      integer(c_int32_t), value :: output, input
      type(*), dimension(..), target, intent(in) :: direction
      type(*), dimension(..), target, intent(inout) :: tangent
      integer(c_int), value :: order, memory
      integer(c_intptr_t), value :: stream
    end function
    integer(c_int) function c_jacobian(model, batch, output, input, jacobian, order, memory, stream) &
      bind(C, name="hortator_jacobian_f")
      import :: c_int, c_int32_t, c_intptr_t, c_ptr
      type(c_ptr), value :: model, batch
      integer(c_int32_t), value :: output, input
      type(*), dimension(..), target, intent(inout) :: jacobian
      integer(c_int), value :: order, memory
      integer(c_intptr_t), value :: stream
    end function
    integer(c_int) function c_report(code, text) bind(C, name="hortator_report")
      import :: c_int, c_char
      integer(c_int), value :: code
      character(kind=c_char), intent(in) :: text(*)
    end function
    integer(c_int32_t) function c_version() bind(C, name="hortator_version")
      import :: c_int32_t
    end function
    subroutine c_print_failure() bind(C, name="hortator_print_failure")
    end subroutine
  end interface

contains

  !> Begins a run of the ranks of `comm`: comm%MPI_VAL of mpi_f08, the integer of module mpi, or HORTATOR_WORLD. `settings`
  !> names a YAML file.
  subroutine run_begin(self, comm, settings, status)
    class(hortator_run), intent(inout) :: self
    integer, intent(in) :: comm
    character(*), intent(in) :: settings
    integer, optional, intent(out) :: status
    if (c_associated(self%handle)) then
      call finish(c_report(int(HORTATOR_USAGE, c_int), 'This variable holds a run that has begun (its models and buffers &
                           &would be lost). Call end first, or use another variable'//c_null_char), status)
    else
      call finish(c_begin(int(comm, c_int32_t), trim(settings)//c_null_char, self%handle), status)
    end if
  end subroutine

  !> Ends the run and its models and buffers. Stop the program with `exit_code`: 0, or 75 if it is to be continued.
  subroutine run_end(self, exit_code, status)
    class(hortator_run), intent(inout) :: self
    integer, optional, intent(out) :: exit_code
    integer, optional, intent(out) :: status
    integer(c_int32_t) :: code
    integer(c_int) :: result
    code = 0
    result = c_end(self%handle, code)
    self%handle = c_null_ptr
    if (present(exit_code)) exit_code = int(code)
    call finish(result, status)
  end subroutine

  !> Whether all ranks should leave; the run was then saved, if there was time.
  logical function run_should_stop(self, status) result(stop)
    class(hortator_run), intent(in) :: self
    integer, optional, intent(out) :: status
    integer(c_int32_t) :: flag
    flag = 0
    call finish(c_should_stop(self%handle, flag), status)
    stop = flag /= 0
  end function

  !> The seconds until the job's time limit; huge if there is none.
  real(c_double) function run_time_left(self, status) result(seconds)
    class(hortator_run), intent(in) :: self
    integer, optional, intent(out) :: status
    seconds = huge(seconds)
    call finish(c_time_left(self%handle, seconds), status)
  end function

  !> Saves and restores `array` with each checkpoint, under `name`. `distribution`: HORTATOR_EACH (the default),
  !> HORTATOR_SAME, or HORTATOR_ROWS for slices along the last dimension.
  subroutine run_keep(self, name, array, distribution, status)
    class(hortator_run), intent(in) :: self
    character(*), intent(in) :: name
    type(*), dimension(..), target, asynchronous, intent(inout) :: array
    integer, optional, intent(in) :: distribution
    integer, optional, intent(out) :: status
    integer(c_int) :: chosen
    chosen = HORTATOR_EACH
    if (present(distribution)) chosen = int(distribution, c_int)
    call finish(c_keep(self%handle, trim(name)//c_null_char, array, chosen), status)
  end subroutine

  !> Saves if `every` seconds are over since the last time; now, without `every`. `saved` is true if it has saved.
  subroutine run_save(self, every, saved, status)
    class(hortator_run), intent(in) :: self
    real(c_double), optional, intent(in) :: every
    logical, optional, intent(out) :: saved
    integer, optional, intent(out) :: status
    real(c_double) :: pause
    integer(c_int32_t) :: flag
    integer(c_int) :: result
    pause = 0
    if (present(every)) pause = every
    flag = 0
    result = c_save(self%handle, pause, flag)
    if (present(saved)) saved = flag /= 0
    call finish(result, status)
  end subroutine

  !> Restores the last checkpoint; `resumed` is false if there is none.
  subroutine run_resume(self, resumed, status)
    class(hortator_run), intent(in) :: self
    logical, optional, intent(out) :: resumed
    integer, optional, intent(out) :: status
    integer(c_int) :: result
    result = c_resume(self%handle)
    if (present(resumed)) resumed = result == HORTATOR_OK
    call finish(result, status)
  end subroutine

  !> Restores the last checkpoint, but kept arrays and buffers that it does not have, or has in another shape, keep what
  !> they hold; `left_out` is their number. `resumed` is false if there is no checkpoint.
  subroutine run_resume_partly(self, left_out, resumed, status)
    class(hortator_run), intent(in) :: self
    integer, optional, intent(out) :: left_out
    logical, optional, intent(out) :: resumed
    integer, optional, intent(out) :: status
    integer(c_int32_t) :: number
    integer(c_int) :: result
    number = 0
    result = c_resume_partly(self%handle, number)
    if (present(left_out)) left_out = int(number)
    if (present(resumed)) resumed = result == HORTATOR_OK
    call finish(result, status)
  end subroutine

  !> Gives `number` to the trackers, in the column `name`. Numbers with different names make up a row.
  subroutine run_log(self, name, number, status)
    class(hortator_run), intent(in) :: self
    character(*), intent(in) :: name
    real(c_double), intent(in) :: number
    integer, optional, intent(out) :: status
    call finish(c_log(self%handle, trim(name)//c_null_char, number), status)
  end subroutine

  !> Gives `number` to the trackers, in the column `name` and the row of this `step` of the simulation.
  subroutine run_log_step(self, step, name, number, status)
    class(hortator_run), intent(in) :: self
    integer, intent(in) :: step
    character(*), intent(in) :: name
    real(c_double), intent(in) :: number
    integer, optional, intent(out) :: status
    call finish(c_log_step(self%handle, int(step, c_int64_t), trim(name)//c_null_char, number), status)
  end subroutine

  !> Makes the model `name` of the settings.
  subroutine model_create(self, run, name, status)
    class(hortator_model), intent(inout) :: self
    class(hortator_run), intent(in) :: run
    character(*), intent(in) :: name
    integer, optional, intent(out) :: status
    call finish(c_model_create(run%handle, trim(name)//c_null_char, self%handle), status)
  end subroutine

  !> One training step; `loss` is the mean over the samples of all ranks that ask for it, before the step. `status` is
  !> HORTATOR_NOTHING if it was left out: no rank has samples, or a number is not finite.
  subroutine model_train(self, batch, loss, status)
    class(hortator_model), intent(in) :: self
    class(hortator_batch), intent(in) :: batch
    real(c_double), optional, intent(inout) :: loss
    integer, optional, intent(out) :: status
    call finish(c_train(self%handle, batch%handle, loss), status)
  end subroutine

  !> Sets `loss` to the loss without training, as the mean over the samples of all ranks.
  subroutine model_evaluate(self, batch, loss, status)
    class(hortator_model), intent(in) :: self
    class(hortator_batch), intent(in) :: batch
    real(c_double), intent(inout) :: loss
    integer, optional, intent(out) :: status
    call finish(c_evaluate(self%handle, batch%handle, loss), status)
  end subroutine

  !> Computes the outputs of the batch from its inputs. Waits for other ranks only if the settings of the model have
  !> infer_together.
  subroutine model_infer(self, batch, status)
    class(hortator_model), intent(in) :: self
    class(hortator_batch), intent(in) :: batch
    integer, optional, intent(out) :: status
    call finish(c_infer(self%handle, batch%handle), status)
  end subroutine

  !> Sets `gradient` to that of sum(cotangent * output) with respect to the first input. `order`, `device` and `stream` are
  !> those of both arrays, as in batch%add.
  subroutine model_adjoint(self, batch, cotangent, gradient, order, device, stream, status)
    class(hortator_model), intent(in) :: self
    class(hortator_batch), intent(in) :: batch
    type(*), dimension(..), target, intent(in) :: cotangent
    type(*), dimension(..), target, intent(inout) :: gradient
    integer, optional, intent(in) :: order
    logical, optional, intent(in) :: device
    integer(c_intptr_t), optional, intent(in) :: stream
    integer, optional, intent(out) :: status
    call finish(c_adjoint(self%handle, batch%handle, cotangent, gradient, chosen_order(order), chosen_memory(device), &
                          chosen_stream(stream)), status)
  end subroutine

  !> Sets `tangent` to the change of an output for a small change of an input along `direction`, which has the input's
  !> shape; `tangent` has the output's. `output` and `input` are their numbers, 1 by default. `order`, `device` and `stream`
  !> are those of both arrays, as in batch%add.
  subroutine model_tangent(self, batch, direction, tangent, output, input, order, device, stream, status)
    class(hortator_model), intent(in) :: self
    class(hortator_batch), intent(in) :: batch
    type(*), dimension(..), target, intent(in) :: direction
    type(*), dimension(..), target, intent(inout) :: tangent
    integer, optional, intent(in) :: output, input
    integer, optional, intent(in) :: order
    logical, optional, intent(in) :: device
    integer(c_intptr_t), optional, intent(in) :: stream
    integer, optional, intent(out) :: status
    call finish(c_tangent(self%handle, batch%handle, chosen_number(output), chosen_number(input), direction, tangent, &
                          chosen_order(order), chosen_memory(device), chosen_stream(stream)), status)
  end subroutine

  !> Sets `jacobian` to the derivatives of an output with respect to an input: (input..., output..., samples) for those of
  !> each sample, where an input is (input..., samples) and an output (output..., samples), or with a dimension more,
  !> (input..., samples, output..., samples), for all. `output` and `input` are their numbers, 1 by default. `order`,
  !> `device` and `stream` are as in batch%add.
  subroutine model_jacobian(self, batch, jacobian, output, input, order, device, stream, status)
    class(hortator_model), intent(in) :: self
    class(hortator_batch), intent(in) :: batch
    type(*), dimension(..), target, intent(inout) :: jacobian
    integer, optional, intent(in) :: output, input
    integer, optional, intent(in) :: order
    logical, optional, intent(in) :: device
    integer(c_intptr_t), optional, intent(in) :: stream
    integer, optional, intent(out) :: status
    call finish(c_jacobian(self%handle, batch%handle, chosen_number(output), chosen_number(input), jacobian, &
                           chosen_order(order), chosen_memory(device), chosen_stream(stream)), status)
  end subroutine

  !> Writes the weights to the folder `dir`, as safetensors; a model of the type `exported` to a file if the name ends
  !> with `.pt2`.
  subroutine model_export(self, dir, status)
    class(hortator_model), intent(in) :: self
    character(*), intent(in) :: dir
    integer, optional, intent(out) :: status
    call finish(c_export(self%handle, trim(dir)//c_null_char), status)
  end subroutine

  !> Makes an empty batch; frees the one that this variable held.
  subroutine batch_create(self, run, status)
    class(hortator_batch), intent(inout) :: self
    class(hortator_run), intent(in) :: run
    integer, optional, intent(out) :: status
    call self%free()
    call finish(c_batch_create(run%handle, self%handle), status)
  end subroutine

  !> Binds an array in a `role`: HORTATOR_INPUT, HORTATOR_TARGET, HORTATOR_OUTPUT, HORTATOR_LOSS_ARGUMENT or
  !> HORTATOR_PRIORITY. The last dimension counts samples, or the first with order = HORTATOR_AS_WRITTEN. With
  !> device = .true. the address is one of the run's device (within host_data use_device), and each call follows the work
  !> of `stream`, a cudaStream_t (acc_get_cuda_stream), or of the default stream.
  subroutine batch_add(self, role, array, order, device, stream, status)
    class(hortator_batch), intent(in) :: self
    integer, intent(in) :: role
    type(*), dimension(..), target, asynchronous, intent(inout) :: array
    integer, optional, intent(in) :: order
    logical, optional, intent(in) :: device
    integer(c_intptr_t), optional, intent(in) :: stream
    integer, optional, intent(out) :: status
    call finish(c_batch_add(self%handle, int(role, c_int), array, chosen_order(order), chosen_memory(device), &
                            chosen_stream(stream)), status)
  end subroutine

  !> Binds an array that is not written, in any `role` but HORTATOR_OUTPUT. It may be intent(in) in the procedure that binds
  !> it. `order`, `device` and `stream` are as in batch%add.
  subroutine batch_add_constant(self, role, array, order, device, stream, status)
    class(hortator_batch), intent(in) :: self
    integer, intent(in) :: role
    type(*), dimension(..), target, asynchronous, intent(in) :: array
    integer, optional, intent(in) :: order
    logical, optional, intent(in) :: device
    integer(c_intptr_t), optional, intent(in) :: stream
    integer, optional, intent(out) :: status
    call finish(c_batch_add_constant(self%handle, int(role, c_int), array, chosen_order(order), chosen_memory(device), &
                                     chosen_stream(stream)), status)
  end subroutine

  !> Frees the batch, not its arrays. The finalizer does the same.
  subroutine batch_free(self)
    class(hortator_batch), intent(inout) :: self
    integer(c_int) :: ignored
    ignored = c_batch_free(self%handle)
    self%handle = c_null_ptr
  end subroutine

  subroutine batch_finalize(self)
    type(hortator_batch), intent(inout) :: self
    call self%free()
  end subroutine

  ! Two variables would free one batch.
  subroutine batch_refuse_copy(self, other)
    class(hortator_batch), intent(inout) :: self
    class(hortator_batch), intent(in) :: other
    if (c_associated(other%handle) .or. c_associated(self%handle)) error stop "hortator: a hortator_batch cannot be copied"
  end subroutine

  !> Makes the buffer `name` of the settings.
  subroutine buffer_create(self, run, name, status)
    class(hortator_buffer), intent(inout) :: self
    class(hortator_run), intent(in) :: run
    character(*), intent(in) :: name
    integer, optional, intent(out) :: status
    call finish(c_buffer_create(run%handle, trim(name)//c_null_char, self%handle), status)
  end subroutine

  !> Copies the batch's samples. Never waits.
  subroutine buffer_put(self, batch, status)
    class(hortator_buffer), intent(in) :: self
    class(hortator_batch), intent(in) :: batch
    integer, optional, intent(out) :: status
    call finish(c_buffer_put(self%handle, batch%handle), status)
  end subroutine

  !> The number of samples that this rank holds.
  integer(c_int64_t) function buffer_count(self, status) result(count)
    class(hortator_buffer), intent(in) :: self
    integer, optional, intent(out) :: status
    count = 0
    call finish(c_buffer_count(self%handle, count), status)
  end function

  !> `steps` training steps on random samples of all ranks. `loss` is that of the last step; `trained` is false if some rank
  !> has too few samples.
  subroutine buffer_train(self, model, steps, loss, trained, status)
    class(hortator_buffer), intent(in) :: self
    class(hortator_model), intent(in) :: model
    integer, intent(in) :: steps
    real(c_double), optional, intent(inout) :: loss
    logical, optional, intent(out) :: trained
    integer, optional, intent(out) :: status
    integer(c_int) :: result
    result = c_buffer_train(self%handle, model%handle, int(steps, c_int64_t), loss)
    if (present(trained)) trained = result == HORTATOR_OK
    call finish(result, status)
  end subroutine

  !> Moves the samples of the buffers `from` to the buffers `to` of other ranks; `moved` is false if there were none.
  !> Collective over comm, which contains the runs of both.
  subroutine hortator_share_samples(comm, from, to, moved, status)
    integer, intent(in) :: comm
    class(hortator_buffer), optional, intent(in) :: from, to
    logical, optional, intent(out) :: moved
    integer, optional, intent(out) :: status
    type(c_ptr) :: giver, taker
    integer(c_int) :: result
    giver = c_null_ptr
    taker = c_null_ptr
    if (present(from)) giver = from%handle
    if (present(to)) taker = to%handle
    result = c_share_samples(int(comm, c_int32_t), giver, taker)
    if (present(moved)) moved = result == HORTATOR_OK
    call finish(result, status)
  end subroutine

  !> Copies the weights of the model `from` to the models `to` of other ranks. Collective over comm.
  subroutine hortator_share_weights(comm, from, to, status)
    integer, intent(in) :: comm
    class(hortator_model), optional, intent(in) :: from, to
    integer, optional, intent(out) :: status
    type(c_ptr) :: giver, taker
    giver = c_null_ptr
    taker = c_null_ptr
    if (present(from)) giver = from%handle
    if (present(to)) taker = to%handle
    call finish(c_share_weights(int(comm, c_int32_t), giver, taker), status)
  end subroutine

  !> The version of the library that the program runs with: 10203 for 1.2.3.
  integer function hortator_version() result(version)
    version = int(c_version())
  end function

  !> The text of the last failure: what (why); hint.
  function hortator_last_error() result(text)
    character(:), allocatable :: text
    character(kind=c_char), pointer :: characters(:)
    type(c_ptr) :: address
    integer :: i
    address = c_last_error()
    call c_f_pointer(address, characters, [c_strlen(address)])
    allocate (character(size(characters)) :: text)
    do i = 1, size(characters)
      text(i:i) = characters(i)
    end do
  end function

  pure integer(c_int) function chosen_order(order)
    integer, optional, intent(in) :: order
    chosen_order = HORTATOR_REVERSED
    if (present(order)) chosen_order = int(order, c_int)
  end function

  ! C counts from 0.
  pure integer(c_int32_t) function chosen_number(number)
    integer, optional, intent(in) :: number
    chosen_number = 0
    if (present(number)) chosen_number = int(number - 1, c_int32_t)
  end function

  pure integer(c_int) function chosen_memory(device)
    logical, optional, intent(in) :: device
    chosen_memory = 0
    if (present(device)) chosen_memory = merge(1_c_int, 0_c_int, device)
  end function

  pure integer(c_intptr_t) function chosen_stream(stream)
    integer(c_intptr_t), optional, intent(in) :: stream
    chosen_stream = 0
    if (present(stream)) chosen_stream = stream
  end function

  subroutine finish(code, status)
    integer(c_int), intent(in) :: code
    integer, optional, intent(out) :: status
    if (present(status)) then
      status = int(code)
    else if (code /= HORTATOR_OK .and. code /= HORTATOR_NOTHING) then
      call c_print_failure()
      error stop
    end if
  end subroutine

end module hortator
