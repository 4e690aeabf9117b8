// Memory of other libraries: DLPack, and views with the members of Kokkos's.
#include <ATen/dlpack.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>

#include <complex>
#include <hortator/error.hpp>
#include <hortator/interop/dlpack.hpp>
#include <hortator/interop/view_array.hpp>
#include <hortator/interop/view_tensor.hpp>
#include <memory>

#include "c_run.hpp"
#include "support/catch.hpp"
#include "support/live_bytes.hpp"

using namespace hortator;
using namespace hortator::test;

namespace {

/// What another library gives away: [2, 3] doubles at an offset, each column in a row of memory.
struct Foreign {
  std::vector<double> numbers = {-1, 0, 3, 1, 4, 2, 5};
  std::vector<std::int64_t> shape = {2, 3};
  std::vector<std::int64_t> strides = {1, 2};
  int deletions = 0;

  template <typename Managed>
  Managed managed() {
    Managed result{};
    result.dl_tensor = {.data = numbers.data(),
                        .device = {kDLCPU, 0},
                        .ndim = 2,
                        .dtype = {kDLFloat, 64, 1},
                        .shape = shape.data(),
                        .strides = strides.data(),
                        .byte_offset = sizeof(double)};
    result.manager_ctx = this;
    result.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->deletions; };
    return result;
  }
};

template <typename T, std::size_t dims>
struct CheckedView {  // the members of Kokkos::View in layout right
  using value_type = T;
  static constexpr std::size_t rank = dims;
  std::shared_ptr<std::vector<std::remove_const_t<T>>> memory;
  std::array<std::int64_t, dims + 1> extents{};
  std::array<std::int64_t, dims + 1> strides{};
  T* data() const { return memory->data(); }
  std::size_t extent(int i) const { return static_cast<std::size_t>(extents[static_cast<std::size_t>(i)]); }
  std::size_t stride(int i) const { return static_cast<std::size_t>(strides[static_cast<std::size_t>(i)]); }
};

int run_number = 0;  // its address is that of a stream

struct DeviceSpace {
  static constexpr const char* name() { return "Cuda"; }
};
struct PinnedSpace {
  static constexpr const char* name() { return "CudaHostPinned"; }
};
template <typename Space>
struct SpacedView : CheckedView<float, 1> {
  using memory_space = Space;
};

CheckedView<double, 2> left_view(std::int64_t rows, std::int64_t columns) {
  auto memory = std::make_shared<std::vector<double>>(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < memory->size(); ++i) (*memory)[i] = static_cast<double>(i);
  return {memory, {rows, columns}, {1, rows}};
}

}  // namespace

TEMPLATE_TEST_CASE("a tensor of DLPack shares the memory and calls the deleter once", "[simulation]", DLManagedTensor,
                   DLManagedTensorVersioned) {
  Foreign foreign;
  auto managed = foreign.managed<TestType>();
  if constexpr (std::is_same_v<TestType, DLManagedTensorVersioned>) managed.version = {DLPACK_MAJOR_VERSION, 0};
  {
    const LiveBytes allocated;
    const auto tensor = from_dlpack(&managed);
    CHECK(allocated.peak() == 0);
    CHECK(tensor.data_ptr() == &foreign.numbers[1]);
    CHECK(tensor.equal(at::arange(6, at::kDouble).view({2, 3})));
    const at::Tensor row = tensor[1];
    foreign.numbers[2] = 7;
    CHECK(row[0].equal(at::scalar_tensor(7, at::kDouble)));
    at::Tensor(tensor).fill_(2);
    CHECK(foreign.numbers == std::vector<double>{-1, 2, 2, 2, 2, 2, 2});
    CHECK(foreign.deletions == 0);
  }
  CHECK(foreign.deletions == 1);
}

TEST_CASE("what DLPack cannot give to LibTorch is refused, and its owner keeps it", "[simulation]") {
  Foreign foreign;
  const auto error_of = [&](auto change) {
    auto managed = foreign.managed<DLManagedTensor>();
    change(managed.dl_tensor);
    try {
      from_dlpack(&managed);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(error_of([](DLTensor& one) { one.dtype.lanes = 4; }), ContainsSubstring("4 lanes"));
  CHECK_THAT(error_of([](DLTensor& one) { one.dtype.bits = 24; }), ContainsSubstring("24 bits"));
  CHECK_THAT(error_of([](DLTensor& one) { one.device.device_type = kDLHexagon; }), ContainsSubstring("no such device"));
  CHECK_THAT(error_of([](DLTensor& one) { one.strides[0] = -1; }), ContainsSubstring("the stride -1"));
  foreign.strides[0] = 1;
  CHECK_THAT(error_of([](DLTensor& one) { one.shape = nullptr; }), ContainsSubstring("without a shape"));
  CHECK_THROWS_WITH(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), ContainsSubstring("got NULL"));
  auto newer = foreign.managed<DLManagedTensorVersioned>();
  newer.version = {DLPACK_MAJOR_VERSION + 1, 0};
  CHECK_THROWS_WITH(from_dlpack(&newer), ContainsSubstring("the major version 2"));
  CHECK(foreign.deletions == 0);
}

TEST_CASE("a tensor lives as long as its struct of DLPack", "[simulation]") {
  const LiveBytes allocated;
  auto tensor = at::arange(6, at::kInt).view({2, 3}).t();
  const auto* data = tensor.data_ptr();
  const auto bytes = allocated.held();
  auto* managed = to_dlpack(tensor);
  auto* versioned = to_dlpack_versioned(tensor);
  CHECK(allocated.held() == bytes);
  tensor.reset();
  CHECK(allocated.held() == bytes);
  CHECK(managed->dl_tensor.data == data);
  CHECK(versioned->dl_tensor.data == data);
  CHECK(managed->dl_tensor.dtype.bits == 32);
  {
    const auto back = from_dlpack(managed);
    const auto also = from_dlpack(versioned);
    CHECK(back.equal(at::arange(6, at::kInt).view({2, 3}).t()));
    CHECK(also.data_ptr() == data);
  }
  CHECK(allocated.held() == 0);
  CHECK_THROWS_WITH(to_dlpack(at::ones({2}).requires_grad_()), ContainsSubstring("detach()"));
  CHECK_THROWS_WITH(to_dlpack(at::ones({2}).to_sparse()), ContainsSubstring("to_dense()"));
  CHECK_THROWS_WITH(to_dlpack(at::ones({2}, at::kComplexFloat).conj()), ContainsSubstring("resolve_conj()"));
  CHECK_THROWS_WITH(to_dlpack({}), ContainsSubstring("undefined"));
}

TEST_CASE("a view is a tensor without a copy, and lives as long as it", "[simulation]") {
  auto view = left_view(2, 3);
  const std::weak_ptr<std::vector<double>> memory = view.memory;
  {
    const LiveBytes allocated;
    const auto tensor = view_tensor(view);
    CHECK(allocated.peak() == 0);
    CHECK(tensor.data_ptr() == view.data());
    CHECK(tensor.equal(at::arange(6, at::kDouble).view({3, 2}).t()));
    at::Tensor(tensor)[1][2].fill_(9);
    CHECK(view.memory->back() == 9);
    view.memory.reset();
    CHECK_FALSE(memory.expired());
    CHECK(tensor.sum().item<double>() == 19);
  }
  CHECK(memory.expired());
  const CheckedView<const std::complex<float>, 1> complex{
      std::make_shared<std::vector<std::complex<float>>>(3), {3}, {1}};
  CHECK(view_tensor(complex).scalar_type() == at::kComplexFloat);
  const CheckedView<std::int64_t, 0> number{std::make_shared<std::vector<std::int64_t>>(1, 5), {}, {}};
  CHECK(view_tensor(number).item<std::int64_t>() == 5);
}

TEST_CASE("C reads and writes views where they lie", "[simulation]") {
  const CRun run(settings_file("views", "models: {net: {type: mlp, dtype: float64, layers: [3, 3]}}\n"));
  const auto input = left_view(4, 3);
  const auto output = left_view(4, 3);
  CBatch bound(run);
  REQUIRE(hortator_batch_add(bound, HORTATOR_INPUT, ViewArray(input)) == HORTATOR_OK);
  REQUIRE(hortator_batch_add(bound, HORTATOR_OUTPUT, ViewArray(output)) == HORTATOR_OK);
  REQUIRE(hortator_infer(run.model("net"), bound) == HORTATOR_OK);
  const auto contiguous = view_tensor(input).contiguous();
  const auto expected = at::zeros({4, 3}, at::kDouble);
  CBatch plain(run);
  plain.add(HORTATOR_INPUT, Array(contiguous.data_ptr(), HORTATOR_F64, {4, 3}))
      .add(HORTATOR_OUTPUT, Array(expected.data_ptr(), HORTATOR_F64, {4, 3}));
  REQUIRE(hortator_infer(run.model("net"), plain) == HORTATOR_OK);
  CHECK(view_tensor(output).allclose(expected));
}

TEST_CASE("a view's memory space decides where its array is", "[simulation]") {
  const CheckedView<float, 1> plain{std::make_shared<std::vector<float>>(2), {2}, {1}};
  CHECK(ViewArray(plain).get()->memory == HORTATOR_HOST);
  CHECK(ViewArray(SpacedView<PinnedSpace>{plain}).get()->memory == HORTATOR_HOST);
  const ViewArray device(SpacedView<DeviceSpace>{plain}, &run_number);
  CHECK(device.get()->memory == HORTATOR_DEVICE);
  CHECK(device.get()->stream == &run_number);
}
