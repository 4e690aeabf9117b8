!> Learns a potential from energies and forces, and moves particles by the forces of the model.
!>
!> The potential is made up, V(x, y) = (x^2 - 1)^2 + 2 y^2 + x y / 2, so that its forces are known. The model has one output,
!> the energy; with `forces: true` in its settings the forces, which are the negative gradient of the energy by the positions,
!> are a second output, and the loss compares both. Each rank has positions of its own.
program potential_of_forces
  use, intrinsic :: iso_fortran_env, only: real64, error_unit
  use mpi
  use hortator
  implicit none

  integer, parameter :: count = 64, steps = 1500, moves = 200
  real(real64), parameter :: pause = 0.02_real64
  type(hortator_run) :: run
  type(hortator_model) :: potential
  type(hortator_batch) :: batch
  real(real64), target :: position(2, count), energy(1, count), force(2, count)
  real(real64), target :: known_energy(1, count), known_force(2, count)
  real(real64) :: velocity(2, count), curvature(2, 2, count), first, last, loss
  integer :: ierr, rank, step, exit_code

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call run%begin(MPI_COMM_WORLD, settings_file())
  call potential%create(run, 'potential')
  call batch%create(run)
  call batch%add(HORTATOR_INPUT, position)
  call batch%add(HORTATOR_OUTPUT, energy)       ! the model's own output,
  call batch%add(HORTATOR_OUTPUT, force)        ! and what follows from it
  call batch%add(HORTATOR_TARGET, known_energy)
  call batch%add(HORTATOR_TARGET, known_force)

  do step = 1, steps
    call choose_positions(step + steps*rank)
    call evaluate_potential()
    call potential%train(batch, loss)
    if (rank == 0 .and. mod(step, 300) == 0) print '(a, i5, a, es9.2)', 'step ', step, ', loss ', loss
  end do

  call choose_positions(-1 - rank)              ! positions that no step has seen
  call evaluate_potential()
  call potential%infer(batch)
  if (rank == 0) print '(a, f7.4, a, f7.4)', 'error of the energies ', rms(energy - known_energy), ', of the forces ', &
    rms(force - known_force)

  ! Particles at rest, moved by the model: their energy is conserved because the forces are those of an energy.
  position = 0.8_real64*position
  velocity = 0
  call potential%infer(batch)
  first = sum(energy)
  do step = 1, moves
    velocity = velocity + 0.5_real64*pause*force
    position = position + pause*velocity
    call potential%infer(batch)
    velocity = velocity + 0.5_real64*pause*force
  end do
  last = sum(energy) + 0.5_real64*sum(velocity**2)
  if (rank == 0) print '(a, f8.5)', 'change of the energy per particle ', abs(last - first)/count

  ! The Hessian of each particle, for its frequencies: the Jacobian of the second output, with the opposite sign.
  position = spread([1._real64, 0._real64], 2, count)
  call potential%jacobian(batch, curvature, output=2)
  if (rank == 0) print '(a, 4f8.3)', 'Hessian at (1, 0), which is 8, 0.5, 0.5, 4: ', -curvature(:, :, 1)

  call batch%free()
  call run%end(exit_code)
  call MPI_Finalize(ierr)
  if (exit_code /= 0) error stop 1

contains

  !> Positions in the square from -1.5 to 1.5, the same ones for the same `number`.
  subroutine choose_positions(number)
    integer, intent(in) :: number
    real(real64), parameter :: ratios(2) = [0.7548776662466927_real64, 0.5698402909980532_real64]
    integer :: i
    do i = 1, count
      position(:, i) = 3*modulo(ratios*(number*count + i), 1._real64) - 1.5_real64
    end do
  end subroutine

  subroutine evaluate_potential()
    known_energy(1, :) = (position(1, :)**2 - 1)**2 + 2*position(2, :)**2 + 0.5_real64*position(1, :)*position(2, :)
    known_force(1, :) = -4*position(1, :)*(position(1, :)**2 - 1) - 0.5_real64*position(2, :)
    known_force(2, :) = -4*position(2, :) - 0.5_real64*position(1, :)
  end subroutine

  pure real(real64) function rms(difference)
    real(real64), intent(in) :: difference(:, :)
    rms = sqrt(sum(difference**2)/size(difference))
  end function

  function settings_file() result(name)
    character(:), allocatable :: name
    integer :: length
    if (command_argument_count() /= 1) then
      write (error_unit, '(a)') 'usage: potential SETTINGS.yaml'
      error stop 2
    end if
    call get_command_argument(1, length=length)
    allocate (character(length) :: name)
    call get_command_argument(1, name)
  end function
end program
