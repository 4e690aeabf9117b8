! Derivatives of twenty networks, and training on forces, against finite differences. One rank. The argument is the
! settings file of the networks.
program derivatives
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real64, int64
  use hortator
  implicit none

  integer, parameter :: features = 8, length = 5, samples = 2, networks = 20
  real(real64), parameter :: tolerance = 1e-7_real64, rate = 1e-6_real64
  type(hortator_run) :: run
  real(real64), target :: input(features, length, samples), output(features, length, samples)
  integer(int64), target :: edges(6, 2, samples)
  character(1024) :: settings
  integer :: number

  call get_command_argument(1, settings)
  call fill(input, 0.1_real64)
  edges = spread(reshape([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 2], [6, 2]), 3, samples)
  call run%begin(HORTATOR_WORLD, trim(settings))
  do number = 1, networks
    call derivatives_of(number)
    call forces_of(number)
  end do
  call refusals()
  call run%end()
  print '(a)', 'derivatives: all is well'

contains

  subroutine derivatives_of(number)
    integer, intent(in) :: number
    type(hortator_model) :: net
    type(hortator_batch) :: batch
    real(real64), target :: whole(features, length, samples, features, length, samples)
    real(real64), target :: own(features, length, features, length, samples)
    real(real64), target :: direction(features, length, samples), tangent(features, length, samples)
    real(real64) :: expected(features, length, samples), step(features, length, samples), error
    integer :: i, j, k
    call net%create(run, named('net', number))
    call batch%create(run)
    call batch%add(HORTATOR_INPUT, input)
    if (number == 18 .or. number == 19) call batch%add(HORTATOR_INPUT, edges)
    call batch%add(HORTATOR_OUTPUT, output)

    call net%jacobian(batch, whole)
    call net%jacobian(batch, own)
    error = 0
    do k = 1, samples
      do j = 1, length
        do i = 1, features
          step = 0
          step(i, j, k) = 1
          call difference(net, batch, output, step, expected)
          error = max(error, maxval(abs(whole(i, j, k, :, :, :) - expected)))
          error = max(error, maxval(abs(own(i, j, :, :, k) - expected(:, :, k))))
        end do
      end do
    end do
    call check(error < tolerance, named('the Jacobian of net', number))

    call fill(direction, 0.5_real64)
    call difference(net, batch, output, direction, expected)
    call net%tangent(batch, direction, tangent)
    call check(maxval(abs(tangent - expected)) < tolerance, named('the tangent of net', number))
  end subroutine

  subroutine forces_of(number)
    integer, intent(in) :: number
    type(hortator_model) :: field
    type(hortator_batch) :: batch
    real(real64), allocatable, target :: energy(:, :, :), wanted_energy(:, :, :)
    real(real64), target :: forces(features, length, samples), wanted(features, length, samples)
    real(real64), target :: direction(features, length, samples), tangent(features, length, samples)
    real(real64) :: step(features, length, samples), expected(features, length, samples), error
    real(real64), allocatable :: change(:, :, :)
    integer :: i, j, k
    select case (number)
    case (11:15)
      allocate (energy(features, 1, samples))
    case (20)
      allocate (energy(features, length, samples))
    case default
      allocate (energy(1, length, samples))
    end select
    allocate (wanted_energy, change, mold=energy)
    wanted_energy = 1
    call fill(wanted, 0.6_real64)
    call field%create(run, named('energy', number))
    call batch%create(run)
    call batch%add(HORTATOR_INPUT, input)
    if (number == 18 .or. number == 19) call batch%add(HORTATOR_INPUT, edges)
    call batch%add(HORTATOR_OUTPUT, energy)
    call batch%add(HORTATOR_OUTPUT, forces)
    call batch%add(HORTATOR_TARGET, wanted_energy)
    call batch%add(HORTATOR_TARGET, wanted)

    error = 0
    do k = 1, samples
      do j = 1, length
        do i = 1, features
          step = 0
          step(i, j, k) = 1
          call difference(field, batch, energy, step, change)
          call field%infer(batch)
          error = max(error, abs(forces(i, j, k) + sum(change)))
        end do
      end do
    end do
    call check(error < tolerance, named('the forces of energy', number))

    call fill(direction, 0.3_real64)
    call difference(field, batch, forces, direction, expected)
    call field%tangent(batch, direction, tangent, output=2)
    call check(maxval(abs(tangent - expected)) < tolerance, named('the tangent of the forces of energy', number))
    call training(field, batch, number)
  end subroutine

  ! The change of the loss between two states of a descent is the mean of their gradients times the way.
  subroutine training(field, batch, number)
    type(hortator_model), intent(in) :: field
    type(hortator_batch), intent(in) :: batch
    integer, intent(in) :: number
    real(real64), allocatable :: first(:), second(:), third(:)
    real(real64) :: losses(2), slope, change
    call field%export('fortran_forces')
    first = exported()
    call field%train(batch, losses(1))
    call field%export('fortran_forces')
    second = exported()
    call field%train(batch, losses(2))
    call field%export('fortran_forces')
    third = exported()
    slope = sum((first - third)*(first - second))/(2*rate**2)
    change = (losses(1) - losses(2))/rate
    call check(slope > 0 .and. abs(change - slope) < tolerance*max(slope, 1._real64), named('training on forces of energy', number))
  end subroutine

  ! All numbers of the file, which are float64.
  function exported() result(numbers)
    real(real64), allocatable :: numbers(:)
    integer(int64) :: header, bytes
    integer :: unit
    open (newunit=unit, file='fortran_forces/model.safetensors', access='stream', form='unformatted', status='old', action='read')
    inquire (unit=unit, size=bytes)
    read (unit) header
    allocate (numbers((bytes - 8 - header)/8))
    read (unit, pos=9 + header) numbers
    close (unit)
  end function

  ! The derivative of `values`, which infer writes, in a direction of the input, of fourth order.
  subroutine difference(model, batch, values, direction, derivative)
    type(hortator_model), intent(in) :: model
    type(hortator_batch), intent(in) :: batch
    real(real64), volatile, intent(inout) :: values(:, :, :)  ! infer writes them
    real(real64), intent(in) :: direction(:, :, :)
    real(real64), intent(out) :: derivative(:, :, :)
    real(real64), parameter :: width = 1e-4_real64, weights(4) = [1, -8, 8, -1], steps(4) = [-2, -1, 1, 2]
    real(real64), allocatable :: kept(:, :, :)
    integer :: i
    kept = input
    derivative = 0
    do i = 1, 4
      input = kept + width*steps(i)*direction
      call model%infer(batch)
      derivative = derivative + weights(i)*values
    end do
    input = kept
    derivative = derivative/(12*width)
  end subroutine

  subroutine refusals()
    type(hortator_model) :: net
    type(hortator_batch) :: batch
    real(real64), target :: short(2)
    integer :: status
    call net%create(run, 'net01')
    call batch%create(run)
    call batch%add(HORTATOR_INPUT, input)
    call net%jacobian(batch, short, status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'with 5 dimensions') > 0, 'a short array')
    call net%tangent(batch, input, output, output=2, status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'Fortran from 1') > 0, 'a second output')
    call net%tangent(batch, short, output, status=status)
    call check(status == HORTATOR_USAGE .and. index(hortator_last_error(), 'The direction has the shape') > 0, 'a short direction')
  end subroutine

  ! Numbers from -1 to 1.
  subroutine fill(values, phase)
    real(real64), intent(out) :: values(:, :, :)
    real(real64), intent(in) :: phase
    integer :: i
    values = reshape([(sin(0.7_real64*i + phase), i=0, size(values) - 1)], shape(values))
  end subroutine

  function named(kind, number) result(name)
    character(*), intent(in) :: kind
    integer, intent(in) :: number
    character(:), allocatable :: name
    character(2) :: digits
    write (digits, '(i2.2)') number
    name = kind//digits
  end function

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(3a)', 'derivatives: ', what, ' is wrong: '//hortator_last_error()
    error stop 1
  end subroutine
end program
