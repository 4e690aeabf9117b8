#pragma once

#include <string>
#include <vector>

#include "formats/hdf5/handle.hpp"

namespace hortator::data_test {

/// Makes or extends an HDF5 file by a dataset of counted numbers, stored in chunks of `chunk` rows; 0: in one piece.
inline void add_hdf5(const std::string& path, const char* name, std::vector<hsize_t> shape, hsize_t chunk) {
  const bool exists = std::ifstream(path).good();
  const formats::File file(exists ? H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)
                                  : H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));
  hsize_t count = 1;
  for (const auto size : shape) count *= size;
  std::vector<std::int64_t> values(count);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i);
  const formats::Space space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
  const formats::PropertyList list(H5Pcreate(H5P_DATASET_CREATE));
  auto chunks = shape;
  chunks.front() = chunk;
  if (chunk > 0) H5Pset_chunk(list.get(), static_cast<int>(chunks.size()), chunks.data());
  const formats::Dataset dataset(
      H5Dcreate2(file.get(), name, H5T_STD_I64LE, space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT));
  H5Dwrite(dataset.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
}

}  // namespace hortator::data_test
