! A call without `status` fails on the last rank only: the program stops there, and its job with it.
program stopped
  use, intrinsic :: iso_c_binding
  use mpi
  use hortator
  implicit none
  type(hortator_run) :: run
  type(hortator_batch) :: batch
  real(c_float), target :: data(3, 4)
  integer :: unit, ierr, rank, ranks

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  if (rank == 0) then
    open (newunit=unit, file='stopped.yaml')
    write (unit, '(a)') 'cpu: true', 'run_dir: run_stopped'
    close (unit)
  end if
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call run%begin(MPI_COMM_WORLD, 'stopped.yaml')
  call batch%create(run)
  if (rank == ranks - 1) call batch%add(77, data)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call run%end()
  call MPI_Finalize(ierr)
end program stopped
