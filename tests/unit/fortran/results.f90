! What calls of the Fortran module return, also where they fail, and which arrays they take. One rank.
program results
  use, intrinsic :: iso_c_binding
  use hortator
  implicit none
  integer :: unit

  open (newunit=unit, file='results.yaml')
  write (unit, '(a)') 'cpu: true', 'run_dir: run_results', 'trackers: []', &
    'models: {line: {type: mlp, layers: [3, 2], optimizer: {type: sgd, lr: 0.1}}}'
  close (unit)
  call results_of_failures()
  call arrays()
  call whole_run()
  print '(a)', 'results: all is well'

contains

  ! A run that has not begun: flags and codes must not be what happens to lie on the stack.
  subroutine results_of_failures()
    type(hortator_run) :: run
    integer :: status, code, left_out, i
    logical :: stops, saved, resumed
    do i = 1, 3
      call fill_stack(i)
      stops = run%should_stop(status=status)
      call check(status == HORTATOR_USAGE .and. .not. stops, 'should_stop without a run')
      call fill_stack(i)
      code = -9
      call run%end(code, status=status)
      call check(status == HORTATOR_USAGE .and. code == 0, 'the exit code without a run')
      call fill_stack(i)
      call run%save(saved=saved, status=status)
      call check(status == HORTATOR_USAGE .and. .not. saved, 'save without a run')
      call fill_stack(i)
      call run%resume_partly(left_out, resumed, status)
      call check(status == HORTATOR_USAGE .and. left_out == 0 .and. .not. resumed, 'resume without a run')
    end do
  end subroutine

  subroutine fill_stack(seed)
    integer, intent(in) :: seed
    integer, volatile :: numbers(4096)
    numbers = 1 + seed
    if (numbers(7) /= 1 + seed) error stop
  end subroutine

  subroutine arrays()
    type(hortator_run) :: run
    type(hortator_batch) :: batch
    real(c_float), allocatable, target :: never(:, :)
    real(c_float), pointer :: nowhere(:, :)
    real(c_float), target :: some(3, 4)
    integer :: status
    nullify (nowhere)
    some = 1
    call run%begin(HORTATOR_WORLD, 'results.yaml')
    call batch%create(run)
    call batch%add(HORTATOR_INPUT, never, status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'is not allocated') > 0, 'no array')
    call batch%add(HORTATOR_INPUT, nowhere, status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'is not allocated') > 0, 'no target')
    call batch%add(HORTATOR_INPUT, some, order=9, status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'unknown order') > 0, 'an unknown order')
    call batch%add_constant(HORTATOR_OUTPUT, some, status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'Bind the array with add') > 0, 'an output')
    call run%end()
    call check(hortator_version() >= 0, 'a version')
  end subroutine

  ! The arrays of a solver's routine that only reads its state.
  subroutine train_on(model, run, state, values, loss)
    type(hortator_model), intent(in) :: model
    type(hortator_run), intent(in) :: run
    real(c_float), target, intent(in) :: state(:, :), values(:, :)
    real(c_double), intent(inout) :: loss
    type(hortator_batch) :: batch
    call batch%create(run)
    call batch%add_constant(HORTATOR_INPUT, state)
    call batch%add_constant(HORTATOR_TARGET, values)
    call model%train(batch, loss)
  end subroutine

  subroutine whole_run()
    type(hortator_run) :: run, copy
    type(hortator_model) :: model
    real(c_float), target :: state(3, 8), values(2, 8)
    real(c_double) :: loss, first
    integer :: status, step, left_out
    logical :: resumed, stops
    call random_number(state)
    call random_number(values)
    call run%begin(HORTATOR_WORLD, 'results.yaml')
    call model%create(run, 'line')
    call train_on(model, run, state, values, first)
    do step = 1, 30
      call train_on(model, run, state(:, ::2), values(:, ::2), loss)
      call run%log_step(step, 'loss', loss)
      call run%log_step(step, 'simulated_time', 0.5d0 * step)
    end do
    call check(loss < first, 'training on arrays that are not written')
    call run%log('time', loss, status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), "the name 'time'") > 0, 'a name of the trackers')
    call run%save()
    call run%resume_partly(left_out, resumed)
    call check(resumed .and. left_out == 0, 'resuming all')
    copy = run
    call run%end()
    stops = copy%should_stop(status=status)
    call check(status == HORTATOR_USAGE .and. .not. stops, 'a copy of a run that has ended')
    call train_on_ended(model)
  end subroutine

  subroutine train_on_ended(model)
    type(hortator_model), intent(in) :: model
    type(hortator_batch) :: batch
    integer :: status
    call model%infer(batch, status=status)
    call check(status == HORTATOR_USAGE, 'a batch that was not created')
    call model%export('nowhere', status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'names nothing') > 0, 'a model of an ended run')
  end subroutine

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(4a)', 'results: wrong: ', what, ': ', hortator_last_error()
    error stop
  end subroutine

end program results
