#include <hortator/bigmodel/safetensors_file.hpp>

#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>

#include "formats/file/file_error.hpp"
#include "support/catch.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

fs::path write(const std::string& name, const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  std::ofstream(name, std::ios::binary) << bytes << header << data;
  return name;
}

// Four rows of two numbers, 0 to 7; the header is padded so that they begin at a multiple of eight.
const std::string matrix_header = R"({"m":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]}}       )";

std::string numbers(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    const auto number = static_cast<float>(i);
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return bytes;
}

const at::Tensor matrix = at::arange(8, at::kFloat).view({4, 2});

}  // namespace

TEST_CASE("tensors are read by name, and rows of them") {
  const SafetensorsFile file(write("m.safetensors", matrix_header, numbers(8)));
  CHECK(file.names() == std::vector<std::string>{"m"});
  CHECK(file.contains("m"));
  CHECK_FALSE(file.contains("M"));
  CHECK(file.info("m").dtype == "F32");
  CHECK(file.info("m").shape == std::vector<std::int64_t>{4, 2});
  CHECK(file.metadata().empty());
  CHECK(at::equal(file.get("m"), matrix));
  CHECK(at::equal(file.get_rows("m", 1, 2), matrix.narrow(0, 1, 2)));
  CHECK(file.get_rows("m", 4, 0).sizes() == at::IntArrayRef({0, 2}));
  CHECK_THROWS_WITH(file.get("weight"), ContainsSubstring("m.safetensors") && ContainsSubstring("no tensor 'weight'"));
  for (const auto& [first, count] : {std::pair(3, 2), {-1, 1}, {0, -1}, {5, 0}})
    CHECK_THROWS_WITH(file.get_rows("m", first, count), ContainsSubstring("it has 4"));
}

TEST_CASE("a view is a private map of the file") {
  const SafetensorsFile file(write("view.safetensors", matrix_header, numbers(8)));
  auto view = file.view("m");
  CHECK(at::equal(view, matrix));
  CHECK(view.data_ptr() == file.view("m").data_ptr());
  CHECK(file.get("m").data_ptr() != file.get("m").data_ptr());
  view.add_(1);
  CHECK(at::equal(file.get("m"), matrix));
  // The map exists as long as the last view.
  const auto left = SafetensorsFile("view.safetensors").view("m");
  CHECK(at::equal(left, matrix));
}

TEST_CASE("a view of a misaligned tensor is a copy") {
  const SafetensorsFile file(write("askew.safetensors", matrix_header + " ", numbers(8)));
  CHECK(at::equal(file.view("m"), matrix));
  CHECK(file.view("m").data_ptr() != file.view("m").data_ptr());
}

TEST_CASE("a scalar has no rows") {
  const SafetensorsFile file(
      write("scalar.safetensors", R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", numbers(1)));
  CHECK(file.get("s").item<float>() == 0);
  CHECK_THROWS_WITH(file.get_rows("s", 0, 1), ContainsSubstring("'s'") && ContainsSubstring("no rows"));
}

TEST_CASE("pairs of four bits are one element, and types that LibTorch does not have are refused") {
  const SafetensorsFile file(write(
      "small.safetensors",
      R"({"f4":{"dtype":"F4","shape":[2,4],"data_offsets":[0,4]},"f6":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[4,7]},)"
      R"("odd":{"dtype":"F4","shape":[2,1],"data_offsets":[7,8]}})",
      "abcdefgh"));
  CHECK(file.get("f4").sizes() == at::IntArrayRef({2, 2}));
  CHECK(file.get_rows("f4", 1, 1).view(at::kByte)[0][0].item<int>() == 'c');
  CHECK(file.info("f4").shape == std::vector<std::int64_t>{2, 4});
  CHECK_THROWS_WITH(file.get("f6"), ContainsSubstring("'f6'") && ContainsSubstring("F6_E2M3"));
  CHECK_THROWS_WITH(file.get("odd"), ContainsSubstring("'odd'") && ContainsSubstring("must be even"));
}

TEST_CASE("errors name the malformed file and the reason") {
  CHECK_THROWS_WITH(SafetensorsFile(write("short.safetensors", matrix_header, numbers(7))),
                    ContainsSubstring("short.safetensors") && ContainsSubstring("follow the header"));
  CHECK_THROWS_WITH(SafetensorsFile("nowhere.safetensors"), ContainsSubstring("nowhere.safetensors"));
}

TEST_CASE("reading a file that has changed is an error in every way") {
  const SafetensorsFile file(write("changed.safetensors", matrix_header, numbers(8)));
  fs::resize_file("changed.safetensors", 80);
  for (const auto& read : std::vector<std::function<void()>>{[&] { file.get("m"); }, [&] { file.get_rows("m", 0, 1); },
                                                             [&] { file.view("m"); }})
    CHECK_THROWS_WITH(read(), ContainsSubstring("changed.safetensors") && ContainsSubstring("was changed"));
}
