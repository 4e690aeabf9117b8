!> A heat equation whose closure is learned while it runs.
!>
!> The fine solver knows how conductivity depends on temperature, u_t = (D(u) u_x)_x; the coarse one has a quarter of the
!> cells and a constant conductivity. While the fine solver runs, each rank with a rod of its own, it gives what the coarse
!> one misses to a buffer, and all ranks train one network on it: from temperature, slope and curvature to a tendency. At the
!> end the coarse solver runs with and without the closure.
program heat_closure
  use, intrinsic :: iso_fortran_env, only: real64, error_unit
  use mpi
  use hortator
  implicit none

  integer, parameter :: ratio = 4, coarse_cells = 32, fine_cells = ratio*coarse_cells, steps = 3000
  real(real64), parameter :: coarse_width = 1.0_real64/coarse_cells, fine_width = 1.0_real64/fine_cells
  real(real64), parameter :: pi = acos(-1.0_real64), time_step = 1.0e-5_real64, plain_conductivity = 0.6_real64
  real(real64), parameter :: closure_scale = 100

  type(hortator_run) :: run
  type(hortator_model) :: closure
  type(hortator_buffer) :: samples
  type(hortator_batch) :: batch
  real(real64), target :: features(3, coarse_cells), missing(1, coarse_cells), predicted(1, coarse_cells)
  real(real64), target :: fine(fine_cells)
  integer, target :: first_step
  real(real64) :: loss, error_plain, error_closure
  integer :: ierr, rank, step, exit_code
  logical :: resumed

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call run%begin(MPI_COMM_WORLD, settings_file())
  call closure%create(run, 'closure')
  call samples%create(run, 'samples')
  call batch%create(run)
  call batch%add(HORTATOR_INPUT, features)
  call batch%add(HORTATOR_TARGET, missing)
  call batch%add(HORTATOR_OUTPUT, predicted)

  fine = initial(fine_cells)
  first_step = 0
  call run%keep('temperature', fine)
  call run%keep('step', first_step)
  call run%resume(resumed)
  if (resumed .and. rank == 0) print '(a, i0)', 'resumed at step ', first_step

  loss = 0
  do step = first_step + 1, steps
    if (mod(step, 10) == 0) call take_samples()
    if (mod(step, 50) == 0) then
      call samples%train(closure, 20, loss)
      call run%log('loss', loss)
    end if
    call advance(fine, fine_width, true_conductivity)
    first_step = step
    if (run%should_stop()) exit
    call run%save(every=600.0_real64)
  end do

  if (first_step == steps) then
    call compare(error_plain, error_closure)
    if (rank == 0) print '(a, es9.2, a, es9.2, a, es9.2)', 'loss ', loss, '  error without closure ', error_plain, &
      '  with it ', error_closure
    call closure%export('closure')
  end if
  call batch%free()
  call run%end(exit_code)
  call MPI_Finalize(ierr)
  if (exit_code /= 0) stop 75

contains

  function settings_file() result(name)
    character(:), allocatable :: name
    integer :: length
    if (command_argument_count() /= 1) then
      write (error_unit, '(a)') 'usage: heat_closure SETTINGS.yaml'
      error stop 2
    end if
    call get_command_argument(1, length=length)
    allocate (character(length) :: name)
    call get_command_argument(1, name)
  end function

  !> The rod of this rank: hot spots of different size and place.
  function initial(cells) result(u)
    integer, intent(in) :: cells
    real(real64) :: u(cells), x
    integer :: i
    do i = 1, cells
      x = (i - 0.5_real64)/cells
      u(i) = 0.6_real64 + 0.3_real64*sin(2*pi*(x + 0.13_real64*rank)) + 0.1_real64*cos((4 + 2*mod(rank, 2))*pi*x)
    end do
  end function

  pure real(real64) function true_conductivity(u)
    real(real64), intent(in) :: u
    true_conductivity = 0.1_real64 + u*u
  end function

  pure real(real64) function constant_conductivity(u)
    real(real64), intent(in) :: u
    constant_conductivity = plain_conductivity + 0*u
  end function

  !> (D(u) u_x)_x on a periodic grid.
  function tendency(u, width, conductivity) result(rate)
    real(real64), intent(in) :: u(:), width
    interface
      pure real(real64) function conductivity(u)
        import :: real64
        real(real64), intent(in) :: u
      end function
    end interface
    real(real64) :: rate(size(u)), flux(size(u))
    integer :: i, right
    do i = 1, size(u)
      right = mod(i, size(u)) + 1
      flux(i) = conductivity((u(i) + u(right))/2)*(u(right) - u(i))/width
    end do
    rate = (flux - cshift(flux, -1))/width
  end function

  subroutine advance(u, width, conductivity)
    real(real64), intent(inout) :: u(:)
    real(real64), intent(in) :: width
    procedure(true_conductivity) :: conductivity
    u = u + time_step*tendency(u, width, conductivity)
  end subroutine

  pure function coarsened(u) result(means)
    real(real64), intent(in) :: u(fine_cells)
    real(real64) :: means(coarse_cells)
    means = sum(reshape(u, [ratio, coarse_cells]), dim=1)/ratio
  end function

  subroutine fill_features(u)
    real(real64), intent(in) :: u(coarse_cells)
    features(1, :) = u
    features(2, :) = (cshift(u, 1) - cshift(u, -1))/(2*coarse_width)
    features(3, :) = (cshift(u, 1) - 2*u + cshift(u, -1))/coarse_width**2
  end subroutine

  !> What the coarse solver misses at this moment.
  subroutine take_samples()
    real(real64) :: u(coarse_cells)
    u = coarsened(fine)
    call fill_features(u)
    missing(1, :) = (coarsened(tendency(fine, fine_width, true_conductivity)) &
                     - tendency(u, coarse_width, constant_conductivity))/closure_scale
    call samples%put(batch)
  end subroutine

  !> The coarse solver from the beginning, with and without the closure, against the fine one: root mean square errors.
  subroutine compare(without, with)
    real(real64), intent(out) :: without, with
    real(real64) :: plain(coarse_cells), closed(coarse_cells), sums(2)
    integer :: i, ranks
    plain = coarsened(initial(fine_cells))
    closed = plain
    do i = 1, steps
      call advance(plain, coarse_width, constant_conductivity)
      call fill_features(closed)
      call closure%infer(batch)
      call advance(closed, coarse_width, constant_conductivity)
      closed = closed + time_step*closure_scale*predicted(1, :)
    end do
    sums = [sum((plain - coarsened(fine))**2), sum((closed - coarsened(fine))**2)]/coarse_cells
    call MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    without = sqrt(sums(1)/ranks)
    with = sqrt(sums(2)/ranks)
    if (rank == 0) then
      call write_profiles(plain, closed)
      call draw_profiles(plain, closed)
    end if
  end subroutine

  subroutine write_profiles(plain, closed)
    real(real64), intent(in) :: plain(coarse_cells), closed(coarse_cells)
    real(real64) :: truth(coarse_cells)
    integer :: unit, i
    truth = coarsened(fine)
    open (newunit=unit, file='profiles.csv', action='write')
    write (unit, '(a)') 'x,truth,with_closure,without'
    do i = 1, coarse_cells
      write (unit, '(3(f9.6, ","), f9.6)') (i - 0.5_real64)*coarse_width, truth(i), closed(i), plain(i)
    end do
    close (unit)
  end subroutine

  !> An image of the same profiles: the truth as a broad grey line, the closure in green, and without it in red.
  subroutine draw_profiles(plain, closed)
    real(real64), intent(in) :: plain(coarse_cells), closed(coarse_cells)
    integer :: unit
    open (newunit=unit, file='profiles.svg', action='write')
    write (unit, '(a)') '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 400" font-family="sans-serif">', &
      '<rect width="640" height="400" fill="white"/>', &
      '<text x="16" y="24">Temperature at the end: truth (grey), with the closure (green), without (red)</text>'
    call draw_line(unit, coarsened(fine), '#bbbbbb', '8')
    call draw_line(unit, plain, '#cc3311', '2')
    call draw_line(unit, closed, '#117733', '2')
    write (unit, '(a)') '</svg>'
    close (unit)
  end subroutine

  subroutine draw_line(unit, u, colour, width)
    integer, intent(in) :: unit
    real(real64), intent(in) :: u(coarse_cells)
    character(*), intent(in) :: colour, width
    real(real64) :: low, high
    integer :: i
    low = minval(coarsened(fine)) - 0.1_real64
    high = maxval(coarsened(fine)) + 0.1_real64
    write (unit, '(5a)') '<polyline fill="none" stroke="', colour, '" stroke-width="', width, '" points="'
    write (unit, '(f8.2, ",", f8.2)') (20 + 600*(i - 0.5_real64)/coarse_cells, &
                                       380 - 340*(u(i) - low)/(high - low), i=1, coarse_cells)
    write (unit, '(a)') '"/>'
  end subroutine

end program heat_closure
