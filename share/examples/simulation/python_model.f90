!> Trains a model that was written in Python: the settings name a .pt2 file of torch.export.save.
!>
!> Each rank has rows of its own. Arrays are (features, rows), which LibTorch sees as [rows, features].
program python_model
  use, intrinsic :: iso_fortran_env, only: real32, real64, error_unit
  use mpi
  use hortator
  implicit none

  integer, parameter :: inputs = 6, outputs = 3, rows = 16, steps = 50

  type(hortator_run) :: run
  type(hortator_model) :: net
  type(hortator_batch) :: batch
  real(real32), target :: x(inputs, rows), y(outputs, rows)
  real(real64) :: loss
  integer :: ierr, rank, step, exit_code

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call run%begin(MPI_COMM_WORLD, settings_file())
  call net%create(run, 'net')
  call batch%create(run)
  call batch%add(HORTATOR_INPUT, x)
  call batch%add(HORTATOR_TARGET, y)

  call make_rows(rank*rows)
  loss = 0
  do step = 1, steps
    call net%train(batch, loss)
    if (rank == 0) print '(i0, a, es16.9)', step, ',', loss
  end do
  call batch%free()
  call run%end(exit_code)
  call MPI_Finalize(ierr)
  if (exit_code /= 0) error stop 1

contains

  !> The rows from `first` on of a table that any number of ranks divides.
  subroutine make_rows(first)
    integer, intent(in) :: first
    integer :: row, column
    do row = 1, rows
      do column = 1, inputs
        x(column, row) = real(sin(real((first + row)*column, real64)), real32)
      end do
      do column = 1, outputs
        y(column, row) = real(cos(real((first + row)*column, real64)), real32)
      end do
    end do
  end subroutine

  function settings_file() result(name)
    character(:), allocatable :: name
    integer :: length
    if (command_argument_count() /= 1) then
      write (error_unit, '(a)') 'usage: python_model SETTINGS.yaml'
      error stop 2
    end if
    call get_command_argument(1, length=length)
    allocate (character(length) :: name)
    call get_command_argument(1, name)
  end function
end program
