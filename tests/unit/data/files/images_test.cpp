// MNIST, CIFAR and folders of images.
#include <ATen/ATen.h>

#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;
namespace fs = std::filesystem;

namespace {

std::string idx(const std::vector<std::uint32_t>& sizes, const std::string& data, char type = 8) {
  std::string head = {0, 0, type, static_cast<char>(sizes.size())};
  for (const auto size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) head += static_cast<char>(size >> shift);
  }
  return head + data;
}

const std::string images = idx({3, 2, 2}, std::string("\0\1\2\3\4\5\6\7\x8\x9\xa\xff", 12));
const std::string labels = idx({3}, {'\5', '\0', '\x9'});

std::string cifar_record(const std::string& label_bytes, char colour) {
  return label_bytes + std::string(3072, colour);
}

}  // namespace

TEST_CASE("MNIST is read as numbers from 0 to 1 with labels") {
  const Mnist mnist(write("images", images), write("labels", labels));
  CHECK(mnist.size() == 3);
  const auto batch = mnist.get_batch(Samples{2, 0});
  CHECK(batch.data.sizes() == at::IntArrayRef({2, 1, 2, 2}));
  CHECK(batch.data.scalar_type() == at::kFloat);
  CHECK(batch.data[0][0][1][1].item<float>() == 1);
  CHECK(batch.data[1][0][1][1].item<float>() == Approx(3.0 / 255));
  CHECK(at::equal(batch.target, at::tensor({9, 5}, at::kLong)));
  CHECK(mnist.get(1).data.sizes() == at::IntArrayRef({1, 2, 2}));
  CHECK(mnist.get(1).target.item<int>() == 0);
  auto loader = data_loader(mnist, {.batch_size = 2});
  std::int64_t seen = 0;
  for (auto& batch : loader) seen += batch.target.size(0);
  CHECK(seen == 3);
}

TEST_CASE("MNIST files that are cut, exchanged, packed or of another kind are refused by name") {
  const auto good_images = write("images", images);
  const auto good_labels = write("labels", labels);
  for (std::size_t size = 0; size < images.size(); ++size)
    CHECK_THROWS_WITH(Mnist(write("cut", images.substr(0, size)), good_labels), ContainsSubstring("\"cut\""));
  CHECK_THROWS_WITH(Mnist(write("more", images + "x"), good_labels), ContainsSubstring("13 bytes"));
  CHECK_THROWS_WITH(Mnist(good_labels, good_images), ContainsSubstring("in 3 dimensions"));
  CHECK_THROWS_WITH(Mnist(write("floats", idx({3, 2, 2}, std::string(48, 'x'), '\xd')), good_labels),
                    ContainsSubstring("not an IDX file of bytes"));
  CHECK_THROWS_WITH(Mnist(write("packed.gz", "\x1f\x8b" + images), good_labels), ContainsSubstring("gunzip"));
  CHECK_THROWS_WITH(Mnist(good_images, write("two", idx({2}, "ab"))),
                    ContainsSubstring("3 images") && ContainsSubstring("2 labels"));
  CHECK_THROWS_WITH(Mnist(write("overflow", idx({0xffffffff, 0xffffffff, 0xffffffff}, "")), good_labels),
                    ContainsSubstring("overflow"));
}

TEST_CASE("CIFAR files are one data set, one after the other") {
  const auto one = write("one.bin", cifar_record("\3", '\0') + cifar_record("\4", '\xff'));
  const auto two = write("two.bin", cifar_record("\5", '\x33'));
  const Cifar cifar({one, two}, CifarKind::cifar10);
  CHECK(cifar.size() == 3);
  const auto batch = cifar.get_batch(Samples{2, 1, 0});
  CHECK(batch.data.sizes() == at::IntArrayRef({3, 3, 32, 32}));
  CHECK(at::equal(batch.target, at::tensor({5, 4, 3}, at::kLong)));
  CHECK(batch.data[0].mean().item<float>() == Approx(0.2));
  CHECK(batch.data[1].min().item<float>() == 1);
  CHECK(cifar.get(0).target.item<int>() == 3);
  const auto hundred = write("hundred.bin", cifar_record("\7\x63", 'x'));
  CHECK(Cifar({hundred}, CifarKind::cifar100).get(0).target.item<int>() == 99);
  CHECK(Cifar({hundred}, CifarKind::cifar100_coarse).get(0).target.item<int>() == 7);
}

TEST_CASE("CIFAR files of another length, or with labels that there are not, are refused") {
  const auto good = cifar_record("\3", 'x');
  CHECK_THROWS_WITH(Cifar({write("cut.bin", good.substr(1))}, CifarKind::cifar10),
                    ContainsSubstring("cut.bin") && ContainsSubstring("3072 bytes"));
  CHECK_THROWS_WITH(Cifar({write("good.bin", good)}, CifarKind::cifar100), ContainsSubstring("records of 3074"));
  CHECK_THROWS_WITH(Cifar({write("empty.bin", "")}, CifarKind::cifar10), ContainsSubstring("0 bytes"));
  CHECK_THROWS_WITH(Cifar({}, CifarKind::cifar10), ContainsSubstring("No CIFAR files"));
  const Cifar cifar({write("label.bin", good + cifar_record("\x0a", 'x'))}, CifarKind::cifar10);
  CHECK_NOTHROW(cifar.get(0));
  CHECK_THROWS_WITH(cifar.get(1),
                    ContainsSubstring("Record 1 of \"label.bin\"") && ContainsSubstring("label 10, expected 0 to 9"));
  write("good.bin", good);
  const Cifar changing({"good.bin"}, CifarKind::cifar10);
  fs::resize_file("good.bin", 100);
  CHECK_THROWS_WITH(changing.get(0), ContainsSubstring("was changed"));
}

TEST_CASE("a folder's folders are classes, in the order of their names") {
  fs::remove_all("classes");
  write("classes/dog/b.PNG", "");
  write("classes/dog/a.jpeg", "not an image");
  write("classes/cat/deep/c.jpg", "");
  write("classes/cat/notes.txt", "");
  write("classes/cat/.hidden.png", "");
  write("classes/.cache/x.png", "");
  write("classes/loose.png", "");
  const ImageFolder folder("classes");
  CHECK(folder.classes() == std::vector<std::string>{"cat", "dog"});
  CHECK(folder.size() == 3);
  CHECK_THROWS_WITH(folder.get(0), ContainsSubstring("c.jpg") && ContainsSubstring("it is empty"));
  CHECK_THROWS_WITH(folder.get(1), ContainsSubstring("dog/a.jpeg") && ContainsSubstring("does not begin like"));
  CHECK_THROWS_WITH(folder.get(3), ContainsSubstring("no sample 3"));
  fs::remove("classes/dog/b.PNG");
  CHECK_THROWS_WITH(folder.get(2), ContainsSubstring("b.PNG"));
}

TEST_CASE("folders without classes, and classes without images, are refused") {
  fs::remove_all("bare");
  fs::create_directories("bare");
  CHECK_THROWS_WITH(ImageFolder("bare"), ContainsSubstring("no folders"));
  write("bare/empty/notes.txt", "");
  CHECK_THROWS_WITH(ImageFolder("bare"), ContainsSubstring("bare/empty") && ContainsSubstring("no images"));
  CHECK_THROWS_WITH(ImageFolder("nowhere"), ContainsSubstring("nowhere"));
  CHECK_THROWS_WITH(ImageFolder("bare", {.channels = 4}), ContainsSubstring("1 or 3 channels"));
}
