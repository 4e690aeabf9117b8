#include "formats/hdf5/file.hpp"

#include <filesystem>
#include <functional>
#include <limits>

#include "formats/file/raw_file.hpp"
#include "formats/hdf5/dataset.hpp"
#include "formats/hdf5/structure.hpp"
#include "support/catch.hpp"
#include "unit/formats/hdf5_attributes.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {
/// Creates the file `name` with what `fill` writes into it.
fs::path make(const std::string& name, const std::function<void(const formats::File&)>& fill) {
  formats::MemoryFile memory;
  auto file = formats::create_file(memory);
  fill(file);
  file.close("write");
  fs::remove(name);
  memory.copy_to(formats::RawFile::create(name));
  return name;
}

}  // namespace

TEST_CASE("datasets are allocated when they are created and report their offset") {
  formats::StoredTensor made;
  const auto path = make("places.h5", [&](const formats::File& file) {
    formats::StructureWriter out(file);
    made = out.add("a/b/weight", formats::TensorSpec{.type = at::kBFloat16, .shape = {3, 5}});
    CHECK(out.add("a/empty", formats::TensorSpec{.type = at::kFloat, .shape = {0, 5}}).offset == 0);
    CHECK(out.add("a/scalar", formats::TensorSpec{.type = at::kLong, .shape = {}}).offset > 0);
    CHECK(out.add("large", formats::TensorSpec{.type = at::kByte, .shape = {1 << 20}}).offset % 4096 == 0);
    out.add("a/b/late", formats::SmallValue(std::int64_t{3}));
  });
  const auto bytes = fs::file_size(path);
  CHECK(static_cast<std::uint64_t>(made.offset) + 30 <= bytes);
  const auto file = formats::open_file(path);
  CHECK(formats::children(formats::root_group(file)) == std::vector<std::string>{"a", "large"});
  const auto found = formats::inspect_dataset(formats::open_dataset(file, "a/b/weight"), "a/b/weight", bytes);
  CHECK(found.spec == formats::TensorSpec{.type = at::kBFloat16, .shape = {3, 5}});
  CHECK(found.offset == made.offset);
  CHECK(formats::inspect_dataset(formats::open_dataset(file, "a/scalar"), "a/scalar", bytes).spec.shape.empty());
  CHECK(formats::inspect_dataset(formats::open_dataset(file, "a/empty"), "a/empty", bytes).spec.elements() == 0);
  CHECK_THROWS_WITH(formats::inspect_dataset(formats::open_dataset(file, "large"), "large", 1000),
                    ContainsSubstring("beyond the end"));
}

TEST_CASE("attributes hold numbers and strings of any length") {
  const std::string long_text(300'000, 'x');
  const std::string odd_text("two\0parts", 9);
  const auto path = make("values.h5", [&](const formats::File& file) {
    formats::StructureWriter out(file);
    const auto put = [&](const std::string& name, const formats::SmallValue& value) {
      out.add("models/0/" + name, value);
    };
    put("least", std::numeric_limits<std::int64_t>::min());
    put("nan", std::numeric_limits<double>::quiet_NaN());
    put("empty", std::string());
    put("long", long_text);
    put("odd", odd_text);
    for (int i = 0; i < 40; ++i) put("many" + std::to_string(i), std::int64_t{i});
  });
  const auto file = formats::open_file(path);
  const formats::Group group(H5Gopen2(file.get(), "models/0", H5P_DEFAULT));
  CHECK(formats::attribute_names(group.get()).size() == 45);
  CHECK(std::get<std::int64_t>(formats::read_attribute(group.get(), "least")) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(std::isnan(std::get<double>(formats::read_attribute(group.get(), "nan"))));
  CHECK(std::get<std::string>(formats::read_attribute(group.get(), "empty")).empty());
  CHECK(std::get<std::string>(formats::read_attribute(group.get(), "long")) == long_text);
  CHECK(std::get<std::string>(formats::read_attribute(group.get(), "odd")) == odd_text);
  CHECK(std::get<std::int64_t>(formats::read_attribute(group.get(), "many39")) == 39);
  CHECK(formats::has_attribute(group.get(), "many0"));
  CHECK_FALSE(formats::has_attribute(group.get(), "none"));
}

TEST_CASE("errors of HDF5 name the file and the reason, and nothing is printed") {
  CHECK_THROWS_WITH(formats::open_file("nowhere.h5"),
                    ContainsSubstring("nowhere.h5") && ContainsSubstring("No such file"));
  const auto path = make("errors.h5", [](const formats::File&) {});
  const auto file = formats::open_file(path);
  CHECK_THROWS_WITH(formats::read_attribute(file.get(), "none"), ContainsSubstring("'none'"));
  // The application's error handler is restored.
  H5E_auto2_t print = nullptr;
  void* data = nullptr;
  CHECK(H5Eget_auto2(H5E_DEFAULT, &print, &data) >= 0);
  CHECK(print != nullptr);
}

TEST_CASE("a moved handle closes once") {
  formats::MemoryFile memory;
  {
    auto first = formats::create_file(memory);
    formats::File second = std::move(first);
    CHECK(first.get() < 0);
    first = std::move(second);
    CHECK(first.get() >= 0);
  }
  CHECK(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
}

TEST_CASE("datasets of other layouts are refused") {
  formats::MemoryFile memory;
  const auto file = formats::create_file(memory);
  const hsize_t size = 8;
  const formats::Space space(H5Screate_simple(1, &size, nullptr));
  const formats::PropertyList chunked(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_chunk(chunked.get(), 1, &size);
  const formats::Dataset chunks(
      H5Dcreate2(file.get(), "chunks", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, chunked.get(), H5P_DEFAULT));
  CHECK_THROWS_WITH(formats::inspect_dataset(chunks, "chunks", 1 << 20),
                    ContainsSubstring("'chunks' is not contiguous"));
  const formats::Dataset big(
      H5Dcreate2(file.get(), "big", H5T_IEEE_F32BE, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  CHECK_THROWS_WITH(formats::inspect_dataset(big, "big", 1 << 20), ContainsSubstring("type that tensors do not have"));
  H5Lcreate_soft("/chunks", file.get(), "link", H5P_DEFAULT, H5P_DEFAULT);
  CHECK_THROWS_WITH(formats::children(formats::root_group(file)), ContainsSubstring("'link'"));
}
