#include "launch/settings/config_path.hpp"

#include <pwd.h>

#include "support/catch.hpp"

using hortator::launching::accelerate_config_path;

TEST_CASE("Accelerate's configuration is looked up in HF_HOME, then XDG_CACHE_HOME, then the home folder") {
  const std::string file = "accelerate/default_config.yaml";
  CHECK(accelerate_config_path({.home = "/h"}) == "/h/.cache/huggingface/" + file);
  CHECK(accelerate_config_path({.home = "/h", .xdg_cache_home = "/x"}) == "/x/huggingface/" + file);
  CHECK(accelerate_config_path({.home = "/h", .hf_home = "/a", .xdg_cache_home = "/x"}) == "/a/" + file);
  CHECK(accelerate_config_path({.home = "/h", .hf_home = "~/a"}) == "/h/a/" + file);
  CHECK(accelerate_config_path({.home = "/h", .hf_home = "~"}) == "/h/" + file);
  CHECK(accelerate_config_path({.home = "/h/", .hf_home = "~//a"}).string() == "/h//a/" + file);
  CHECK(accelerate_config_path({.home = "/", .hf_home = "~"}).string() == "/" + file);
  CHECK(accelerate_config_path({.home = "/h", .hf_home = "~root/a"}) == getpwuid(0)->pw_dir + ("/a/" + file));
  CHECK(accelerate_config_path({.home = "/h", .hf_home = "~of an unknown user/a"}) == "~of an unknown user/a/" + file);
}

TEST_CASE("a centre's settings are in the folders of XDG_CONFIG_DIRS, then in /etc/hortator") {
  using hortator::launching::central_folders;
  using Folders = std::vector<std::filesystem::path>;
  CHECK(central_folders({}) == Folders{"/etc/xdg/hortator", "/etc/hortator"});
  CHECK(central_folders("") == Folders{"/etc/xdg/hortator", "/etc/hortator"});
  CHECK(central_folders("/a:/b/c") == Folders{"/a/hortator", "/b/c/hortator", "/etc/hortator"});
  CHECK(central_folders(":relative:/a") == Folders{"/a/hortator", "/etc/hortator"});
}
