#include "formats/hdf5/dataset.hpp"

#include <ATen/ATen.h>

#include <hortator/error.hpp>

#include "formats/tensor/tensor_spec.hpp"
#include "support/catch.hpp"
#include "support/types.hpp"

using namespace hortator;

namespace {
// HDF5 must convert every bit pattern of a 16-bit float to the same value as LibTorch.
bool converts_as_torch_does(at::ScalarType type) {
  const auto patterns = at::arange(65536).to(at::kInt).to(at::kUInt16).view(type);
  const auto expected = patterns.to(at::kFloat);
  auto buffer = at::zeros({65536}, at::kFloat);
  std::memcpy(buffer.mutable_data_ptr(), patterns.const_data_ptr(), patterns.nbytes());
  formats::check(H5Tconvert(formats::file_type(type).get(), H5T_NATIVE_FLOAT, 65536, buffer.mutable_data_ptr(), nullptr,
                            H5P_DEFAULT),
                 "convert");
  return buffer.allclose(expected, 0, 0, true);
}
}  // namespace

TEST_CASE("every type has a file type of its size and an inverse") {
  for (const auto type : test::stored_types) {
    INFO(c10::toString(type));
    const auto stored = formats::file_type(type);
    CHECK(H5Tget_size(stored.get()) == c10::elementSize(type));
    CHECK(formats::scalar_type(stored) == type);
  }
}

TEST_CASE("small floats are HDF5 floats") {
  CHECK(converts_as_torch_does(at::kHalf));
  CHECK(converts_as_torch_does(at::kBFloat16));
}

TEST_CASE("types without a counterpart are refused by name") {
  CHECK_THROWS_WITH(formats::file_type(at::kQInt8), ContainsSubstring("QInt8"));
  const formats::Type big_endian(H5Tcopy(H5T_IEEE_F32BE));
  CHECK_FALSE(formats::scalar_type(big_endian).has_value());
}

TEST_CASE("a TensorSpec prints type and shape") {
  CHECK(formats::to_string(formats::spec_of(at::zeros({3, 4}, at::kBFloat16))) == "bfloat16 [3, 4]");
  CHECK(formats::to_string(formats::spec_of(at::zeros({}, at::kBool))) == "bool []");
  CHECK(formats::spec_of(at::zeros({3, 4}, at::kDouble)).bytes() == 96);
  CHECK(formats::spec_of(at::zeros({3, 0}, at::kDouble)).elements() == 0);
}
