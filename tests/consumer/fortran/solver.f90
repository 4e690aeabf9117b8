! Sections, statuses and finalizers of the Fortran module, on one rank. Hortator starts MPI.
program solver
  use, intrinsic :: iso_c_binding
  use hortator
  implicit none
  type(hortator_run) :: run
  type(hortator_model) :: model, none
  real(c_float), target :: wide(5, 8), target_values(2, 4), output(2, 4), section_output(4, 8)
  real(c_double), target :: kept(3)
  real(c_double) :: loss, first
  logical :: resumed
  integer :: status, step, exit_code

  call random_number(wide)
  call random_number(target_values)
  kept = [1, 2, 3]
  call run%begin(HORTATOR_WORLD, 'nowhere.yaml', status=status)
  call check(status == HORTATOR_USAGE, 'a missing file')
  call check(index(hortator_last_error(), "'nowhere.yaml' cannot be read") > 0, 'its text')
  call run%begin(HORTATOR_WORLD, 'sim.yaml')
  call run%begin(HORTATOR_WORLD, 'sim.yaml', status=status)
  call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'has begun') > 0, 'a second begin')
  call model%create(run, 'line')
  call none%create(run, 'lime', status=status)
  call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), "did you mean 'line'?") > 0, 'a wrong name')
  call run%keep('kept', kept)
  call run%resume(resumed)
  call check(.not. resumed, 'no checkpoint yet')
  call train_with_sections()
  call wrong_shape()
  call run%save()
  kept = 0
  call run%resume(resumed)
  call check(resumed .and. all(kept == [1, 2, 3]), 'a kept array')
  call adjoint()
  call sharing()
  call run%end(exit_code)
  call check(exit_code == 0, 'the exit code')
  print '(a)', 'solver: all is well'

contains

  ! The batches are finalized at the end of each procedure.
  subroutine train_with_sections()
    type(hortator_batch) :: batch, sections
    real(c_float), target :: dense(3, 4)
    call batch%create(run)
    call sections%create(run)
    dense = wide(2:4, 1::2)
    call batch%add(HORTATOR_INPUT, dense)
    call batch%add(HORTATOR_OUTPUT, output)
    call sections%add(HORTATOR_INPUT, wide(2:4, 1::2))
    call sections%add(HORTATOR_TARGET, target_values)
    call sections%add(HORTATOR_OUTPUT, section_output(::2, ::2))
    section_output = -1
    call model%infer(batch)
    call model%infer(sections)
    call check(all(section_output(::2, ::2) == output), 'a strided section')
    call check(all(section_output(2::2, :) == -1) .and. all(section_output(:, 2::2) == -1), 'elements between')
    call model%train(sections, first)
    do step = 1, 20
      call model%train(sections)
    end do
    call model%evaluate(sections, loss)
    call check(loss < first, 'training')
    wide(3, 1) = wide(3, 1) + 1
    call model%infer(sections)
    call check(any(section_output(::2, ::2) /= output), 'a batch reads what its arrays hold')
  end subroutine

  subroutine wrong_shape()
    type(hortator_batch) :: batch
    character(4), target :: text(2)
    call batch%create(run)
    call batch%add(HORTATOR_INPUT, wide)
    call batch%add(HORTATOR_TARGET, target_values)
    call model%train(batch, status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'the shape [8, 5]') > 0, 'a wrong shape')
    call batch%add(HORTATOR_INPUT, text, status=status)
    call check(status == HORTATOR_USAGE, 'a type that LibTorch does not have')
  end subroutine

  subroutine adjoint()
    type(hortator_batch) :: batch
    real(c_float), target :: input(1, 3), weights(1, 2), gradient(1, 3)
    input = 1
    weights = 1
    gradient = 0
    call batch%create(run)
    call batch%add(HORTATOR_INPUT, input, order=HORTATOR_AS_WRITTEN)
    call model%adjoint(batch, weights, gradient, order=HORTATOR_AS_WRITTEN)
    call check(any(gradient /= 0), 'the adjoint')
    call model%adjoint(batch, weights, gradient, device=.true., stream=42_c_intptr_t, status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'computes on CPUs') > 0, 'a device adjoint')
  end subroutine

  subroutine sharing()
    type(hortator_batch) :: batch
    real(c_float), target :: input(3, 1)
    call hortator_share_weights(HORTATOR_WORLD, from=model, to=model)
    call hortator_share_weights(HORTATOR_WORLD, to=model, status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'No rank gives weights') > 0, 'no weights')
    call hortator_share_samples(HORTATOR_WORLD, status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'No rank takes') > 0, 'no buffer')
    call batch%create(run)
    call batch%add(HORTATOR_INPUT, input, device=.true., status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'computes on CPUs') > 0, 'a device array')
  end subroutine

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(4a)', 'solver: wrong: ', what, ': ', hortator_last_error()
    error stop
  end subroutine

end program solver
