#include "formats/hdf5/column.hpp"

#include <ATen/ATen.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

#include "formats/hdf5/dataset.hpp"
#include "formats/hdf5/file.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

/// A file as other programs write it: chunked, compressed, of any type.
class OtherFile {
 public:
  explicit OtherFile(const char* name) : name_(name), file_(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}

  void add(const char* name, std::vector<hsize_t> shape, std::vector<hsize_t> chunk, hid_t type, const float* values) {
    const formats::Space space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
    const formats::PropertyList list(H5Pcreate(H5P_DATASET_CREATE));
    if (!chunk.empty()) {
      H5Pset_chunk(list.get(), static_cast<int>(chunk.size()), chunk.data());
      H5Pset_deflate(list.get(), 3);
    }
    const formats::Dataset dataset(
        H5Dcreate2(file_.get(), name, type, space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT));
    if (values != nullptr) H5Dwrite(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  }

  formats::File close() {
    file_.close("write");
    bytes_.emplace(name_);
    return formats::open_file(name_);
  }
  const formats::FixedFile& bytes() const { return *bytes_; }
  hid_t id() const { return file_.get(); }

 private:
  std::string name_;
  formats::File file_;
  std::optional<formats::FixedFile> bytes_;
};

std::vector<float> counted(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return values;
}

}  // namespace

TEST_CASE("rows of any dataset are read in the requested order, with repetitions") {
  OtherFile other("rows.h5");
  other.add("plain", {7, 3}, {}, H5T_IEEE_F32LE, counted(21).data());
  other.add("packed", {7, 3}, {2, 2}, H5T_IEEE_F32LE, counted(21).data());
  other.add("unwritten", {7, 2}, {}, H5T_IEEE_F32LE, nullptr);
  other.add("backwards", {7}, {}, H5T_IEEE_F32BE, counted(7).data());
  other.add("numbers", {7}, {4}, H5T_STD_I16BE, counted(7).data());
  const auto file = other.close();
  const auto whole = at::arange(21, at::kFloat).view({7, 3});
  for (const std::vector<std::int64_t>& rows :
       {std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}, {5}, {6, 0, 3}, {2, 2, 1, 2}, {4, 5, 1, 2}, {}}) {
    const auto expected = whole.index_select(0, at::tensor(rows, at::kLong));
    CHECK(at::equal(formats::Hdf5Column(file, other.bytes(), "plain").read(rows), expected));
    CHECK(at::equal(formats::Hdf5Column(file, other.bytes(), "packed").read(rows), expected));
  }
  // Without a cache of chunks the result is the same.
  const std::vector<std::int64_t> mixed = {6, 0, 3};
  CHECK(at::equal(formats::Hdf5Column(file, other.bytes(), "packed", 1).read(mixed),
                  whole.index_select(0, at::tensor(mixed))));
  // Never written: HDF5 returns the fill value.
  CHECK(at::equal(formats::Hdf5Column(file, other.bytes(), "unwritten").read(mixed), at::zeros({3, 2})));
  const formats::Hdf5Column numbers(file, other.bytes(), "numbers");
  CHECK(numbers.row() == formats::TensorSpec{.type = at::kShort, .shape = {}});
  const std::vector<std::int64_t> last = {6, 5};
  CHECK(at::equal(numbers.read(last), at::tensor({6, 5}, at::kShort)));
  CHECK(at::equal(formats::Hdf5Column(file, other.bytes(), "backwards").read(last), at::tensor({6.0F, 5.0F})));
}

TEST_CASE("a column reports how its rows are stored") {
  OtherFile other("chunks.h5");
  other.add("plain", {7, 3}, {}, H5T_IEEE_F64LE, counted(21).data());
  other.add("packed", {7, 3}, {4, 2}, H5T_IEEE_F32BE, counted(21).data());
  other.add("none", {0, 3}, {}, H5T_IEEE_F32LE, nullptr);
  const auto file = other.close();
  const formats::Hdf5Column plain(file, other.bytes(), "plain");
  const formats::Hdf5Column packed(file, other.bytes(), "packed");
  CHECK(plain.chunk_rows() == 1);
  CHECK(packed.chunk_rows() == 4);
  CHECK(plain.rows() == 7);
  CHECK(plain.row() == formats::TensorSpec{.type = at::kDouble, .shape = {3}});
  CHECK(packed.row() == formats::TensorSpec{.type = at::kFloat, .shape = {3}});
  CHECK(formats::Hdf5Column(file, other.bytes(), "none").rows() == 0);
}

TEST_CASE("a decompressed chunk is cached for its other rows, also a large one") {
  constexpr std::int64_t rows = 2048;
  constexpr std::int64_t width = 512;  // two chunks of 2 MiB, more than HDF5 caches by default
  OtherFile other("kept.h5");
  other.add("x", {rows, width}, {rows / 2, width}, H5T_IEEE_F32LE, counted(rows * width).data());
  const std::vector<std::int64_t> second_chunk = {rows - 1};
  const std::vector<std::int64_t> others = {1, 700, rows / 2, rows - 1};
  {
    const auto file = other.close();
    const formats::Hdf5Column column(file, other.bytes(), "x");  // reads a row of the first chunk
    column.read(second_chunk);
    std::fstream damaged("kept.h5", std::ios::binary | std::ios::in | std::ios::out);
    damaged.seekp(2048);
    damaged << std::string(std::filesystem::file_size("kept.h5") - 4096, '?') << std::flush;
    const auto expected = at::arange(rows * width, at::kFloat).view({rows, width}).index_select(0, at::tensor(others));
    CHECK(at::equal(column.read(others), expected));
  }
  CHECK_THROWS_AS(formats::Hdf5Column(formats::open_file("kept.h5"), other.bytes(), "x"), formats::FileError);
}

TEST_CASE("datasets without rows of numbers are refused by file and name") {
  OtherFile other("odd.h5");
  const formats::Type string_type(H5Tcopy(H5T_C_S1));
  H5Tset_size(string_type.get(), 4);
  other.add("words", {2}, {}, string_type.get(), nullptr);
  const formats::Space scalar(H5Screate(H5S_SCALAR));
  formats::Dataset(
      H5Dcreate2(other.id(), "scalar", H5T_IEEE_F32LE, scalar.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Gclose(H5Gcreate2(other.id(), "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  const auto file = other.close();
  const auto open = [&](const char* name) { return formats::Hdf5Column(file, other.bytes(), name); };
  CHECK_THROWS_WITH(open("words"),
                    ContainsSubstring("'words' of \"odd.h5\"") && ContainsSubstring("no tensor can hold"));
  CHECK_THROWS_WITH(open("scalar"), ContainsSubstring("'scalar'") && ContainsSubstring("no rows"));
  CHECK_THROWS_WITH(open("missing"), ContainsSubstring("'missing' of \"odd.h5\""));
  CHECK_THROWS_WITH(open("group"), ContainsSubstring("'group' of \"odd.h5\""));
}
