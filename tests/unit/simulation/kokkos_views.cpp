// Arrays of Kokkos's own views: kokkos.sh compiles and runs it where Kokkos is installed.
#include <Kokkos_Core.hpp>
#include <cstdio>
#include <cstdlib>
#include <hortator/interop/view_array.hpp>

namespace {

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("kokkos_views: wrong: %s\n", what);
  std::exit(1);
}

/// Element [i, j] of the array is the view's, at the same address.
template <typename View>
void check_matrix(const View& view, hortator_type type, const char* what) {
  const hortator::ViewArray array(view);
  const auto* const shown = array.get();
  check(shown->rank == 2 && shown->type == type && shown->memory == HORTATOR_HOST, what);
  using Element = typename View::value_type;
  const auto* const data = static_cast<const Element*>(shown->data);
  for (std::int64_t i = 0; i < shown->shape[0]; ++i) {
    for (std::int64_t j = 0; j < shown->shape[1]; ++j)
      check(data + i * shown->stride[0] + j * shown->stride[1] == &view(i, j), what);
  }
  check(shown->shape[0] == static_cast<std::int64_t>(view.extent(0)), what);
  check(shown->shape[1] == static_cast<std::int64_t>(view.extent(1)), what);
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::initialize(argc, argv);
  {
    const Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace> right("right", 3, 4);
    const Kokkos::View<float**, Kokkos::LayoutLeft, Kokkos::HostSpace> left("left", 3, 4);
    const Kokkos::View<int* [5], Kokkos::HostSpace> fixed("fixed", 3);
    check_matrix(right, HORTATOR_F64, "layout right");
    check_matrix(left, HORTATOR_F32, "layout left");
    check_matrix(fixed, HORTATOR_I32, "a size that is known at compile time");
    check_matrix(Kokkos::subview(right, Kokkos::make_pair(1, 3), Kokkos::ALL()), HORTATOR_F64, "some rows");
    check_matrix(Kokkos::subview(left, Kokkos::ALL(), Kokkos::make_pair(0, 2)), HORTATOR_F32, "some columns");
    check_matrix(Kokkos::View<const double**, Kokkos::LayoutRight, Kokkos::HostSpace>(right), HORTATOR_F64,
                 "constants");
    const Kokkos::View<Kokkos::complex<double>*, Kokkos::HostSpace> complex("complex", 2);
    check(hortator::ViewArray(complex).get()->type == HORTATOR_C128, "complex numbers");
    const Kokkos::View<double, Kokkos::HostSpace> number("number");
    check(hortator::ViewArray(number).get()->rank == 0, "a number");
    const auto uses = right.use_count();
    const hortator::ViewArray borrowed(right);
    check(borrowed.get()->data == right.data() && right.use_count() == uses, "no copy");
  }
  Kokkos::finalize();
  std::puts("kokkos_views: all is well");
}
