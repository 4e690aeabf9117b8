#include "io/hdf5_column.hpp"

#include <ATen/ATen.h>

#include <array>
#include <filesystem>

#include "io/hdf5_file.hpp"
#include "io/hdf5_type.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

/// A file as other programs write them: chunked, packed, of any type.
class OtherFile {
 public:
  explicit OtherFile(const char* name) : name_(name), file_(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}

  void add(const char* name, std::vector<hsize_t> shape, std::vector<hsize_t> chunk, hid_t type, const float* values) {
    const io::Space space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
    const io::PropertyList list(H5Pcreate(H5P_DATASET_CREATE));
    if (!chunk.empty()) {
      H5Pset_chunk(list.get(), static_cast<int>(chunk.size()), chunk.data());
      H5Pset_deflate(list.get(), 3);
    }
    const io::Dataset dataset(H5Dcreate2(file_.get(), name, type, space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT));
    if (values != nullptr) H5Dwrite(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  }

  io::File close() {
    file_.close("write");
    return io::open_file(name_);
  }
  hid_t id() const { return file_.get(); }

 private:
  std::string name_;
  io::File file_;
};

std::vector<float> counted(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return values;
}

}  // namespace

TEST_CASE("rows of any dataset are read in the order asked for, each as often as it is") {
  OtherFile other("rows.h5");
  other.add("plain", {7, 3}, {}, H5T_IEEE_F32LE, counted(21).data());
  other.add("packed", {7, 3}, {2, 2}, H5T_IEEE_F32LE, counted(21).data());
  other.add("numbers", {7}, {4}, H5T_STD_I16BE, counted(7).data());
  const auto file = other.close();
  const auto whole = at::arange(21, at::kFloat).view({7, 3});
  for (const std::vector<std::int64_t>& rows :
       {std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}, {5}, {6, 0, 3}, {2, 2, 1, 2}, {4, 5, 1, 2}, {}}) {
    const auto expected = whole.index_select(0, at::tensor(rows, at::kLong));
    CHECK(at::equal(io::Hdf5Column(file, "rows.h5", "plain").read(rows), expected));
    CHECK(at::equal(io::Hdf5Column(file, "rows.h5", "packed").read(rows), expected));
  }
  const io::Hdf5Column numbers(file, "rows.h5", "numbers");
  CHECK(numbers.row() == io::TensorSpec{.type = at::kShort, .shape = {}});
  const std::vector<std::int64_t> backwards = {6, 5};
  CHECK(at::equal(numbers.read(backwards), at::tensor({6, 5}, at::kShort)));
}

TEST_CASE("a column says how its rows are stored") {
  OtherFile other("chunks.h5");
  other.add("plain", {7, 3}, {}, H5T_IEEE_F64LE, counted(21).data());
  other.add("packed", {7, 3}, {4, 2}, H5T_IEEE_F32BE, counted(21).data());
  other.add("none", {0, 3}, {}, H5T_IEEE_F32LE, nullptr);
  const auto file = other.close();
  const io::Hdf5Column plain(file, "chunks.h5", "plain");
  const io::Hdf5Column packed(file, "chunks.h5", "packed");
  CHECK(plain.chunk_rows() == 1);
  CHECK(packed.chunk_rows() == 4);
  CHECK(plain.rows() == 7);
  CHECK(plain.row() == io::TensorSpec{.type = at::kDouble, .shape = {3}});
  CHECK(packed.row() == io::TensorSpec{.type = at::kFloat, .shape = {3}});
  CHECK(io::Hdf5Column(file, "chunks.h5", "none").rows() == 0);
}

TEST_CASE("what has no rows of numbers is refused by file and name") {
  OtherFile other("odd.h5");
  const io::Type words(H5Tcopy(H5T_C_S1));
  H5Tset_size(words.get(), 4);
  other.add("words", {2}, {}, words.get(), nullptr);
  const io::Space scalar(H5Screate(H5S_SCALAR));
  io::Dataset(H5Dcreate2(other.id(), "scalar", H5T_IEEE_F32LE, scalar.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Gclose(H5Gcreate2(other.id(), "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  const auto file = other.close();
  const auto open = [&](const char* name) { return io::Hdf5Column(file, "odd.h5", name); };
  CHECK_THROWS_WITH(open("words"), ContainsSubstring("'words' of \"odd.h5\"") && ContainsSubstring("no tensor has"));
  CHECK_THROWS_WITH(open("scalar"), ContainsSubstring("'scalar'") && ContainsSubstring("no rows"));
  CHECK_THROWS_WITH(open("missing"), ContainsSubstring("'missing' of \"odd.h5\""));
  CHECK_THROWS_WITH(open("group"), ContainsSubstring("'group' of \"odd.h5\""));
}
