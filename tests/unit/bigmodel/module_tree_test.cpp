#include "bigmodel/module_tree.hpp"

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include "bigmodel/no_split_classes.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::bigmodel;

namespace {

struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    register_parameter("gain", at::ones({4}));
    register_buffer("mask", at::zeros({2, 2}, at::kBool));
    register_module("linear", torch::nn::Linear(4, 4));
  }
};
TORCH_MODULE(Block);

struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("embed", embed);
    register_module("blocks", blocks);
    for (int i = 0; i < 2; ++i) blocks->push_back(Block());
    register_module("head", head);
    head->weight = head->register_parameter("tied", embed->weight);
  }
  torch::nn::Embedding embed{10, 4};
  torch::nn::ModuleList blocks;
  torch::nn::Linear head{torch::nn::LinearOptions(4, 10).bias(false)};
};

}  // namespace

TEST_CASE("a module becomes a tree of classes, tensors, children in order and ties") {
  const NetImpl net;
  const auto tree = tree_of(net);
  CHECK(tree.root.type == "Net");
  REQUIRE(tree.root.children.size() == 3);
  CHECK(tree.root.children[0].type == "Embedding");
  const auto& blocks = tree.root.children[1];
  CHECK(blocks.type == "ModuleList");
  REQUIRE(blocks.children.size() == 2);
  CHECK(blocks.children[1].name == "1");
  CHECK(blocks.children[1].type == "Block");
  CHECK(blocks.children[1].parameters[0].name == "gain");
  CHECK(blocks.children[1].buffers[0].spec == formats::TensorSpec{.type = at::kBool, .shape = {2, 2}});
  CHECK(blocks.children[1].children[0].type == "Linear");
  CHECK(tree.ties == std::map<std::string, std::string>{{"head.tied", "embed.weight"}});
  CHECK(tied_groups(tree) == TiedGroups{{"embed.weight", "head.tied"}});
}

TEST_CASE("no_split classes match with and without the suffix Impl") {
  const auto tree = tree_of(NetImpl());
  const auto& block = tree.root.children[1].children[0];
  CHECK(NoSplitClasses({"Block"}).keeps_whole(block));
  CHECK(NoSplitClasses({"BlockImpl"}).keeps_whole(block));
  CHECK_FALSE(NoSplitClasses({"Blocks"}).keeps_whole(block));
}

TEST_CASE("a name is within a module only at a dot") {
  CHECK(is_within("a.b", "a"));
  CHECK(is_within("a", "a"));
  CHECK(is_within("a", ""));
  CHECK_FALSE(is_within("ab", "a"));
  CHECK_FALSE(is_within("a", "a.b"));
}
