#pragma once

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string>

namespace hortator::test {

// What this process holds beyond its memory: open descriptors and threads, as they were when it was constructed.
class Leftovers {
 public:
  Leftovers() : descriptors_(descriptors()), threads_(threads()) {}

  // What is there now and was not there then, as a text; empty if there is nothing. MPI's connections, LibTorch's
  // pools and the thread that reports killed ranks stay for the life of a process and do not count, nor does any thread
  // if threads_may_stay.
  //
  // A thread that has been joined is still listed until the kernel has removed it, which takes a while on a busy
  // machine: what goes within two seconds is not left behind.
  std::string new_ones(bool threads_may_stay) const {
    auto found = new_ones_now(threads_may_stay);
    for (int i = 0; i < 200 && !found.empty(); ++i) {
      usleep(10'000);
      found = new_ones_now(threads_may_stay);
    }
    return found;
  }

 private:
  std::string new_ones_now(bool threads_may_stay) const {
    std::string found;
    for (const auto& [number, target] : descriptors()) {
      if (!stays(target) && descriptors_.count(number) == 0)
        found += " descriptor " + std::to_string(number) + " (" + target + ")";
    }
    if (threads_may_stay) return found;
    for (const auto& [id, name] : threads()) {
      if (threads_.count(id) == 0 && !stays_running(name)) found += " thread '" + name + "'";
    }
    return found;
  }

  static std::set<std::string> names_in(const char* folder) {
    std::set<std::string> names;
    DIR* open = opendir(folder);
    while (const dirent* entry = readdir(open)) {
      if (entry->d_name[0] != '.') names.insert(entry->d_name);
    }
    closedir(open);
    return names;
  }

  static std::map<int, std::string> descriptors() {
    std::map<int, std::string> found;
    for (const auto& name : names_in("/proc/self/fd")) {
      std::array<char, 512> target{};
      if (readlink(("/proc/self/fd/" + name).c_str(), target.data(), target.size() - 1) > 0)
        found[std::stoi(name)] = target.data();
    }
    return found;
  }

  static std::map<int, std::string> threads() {
    std::map<int, std::string> found;
    for (const auto& id : names_in("/proc/self/task")) {
      std::array<char, 32> name{};
      if (FILE* file = std::fopen(("/proc/self/task/" + id + "/comm").c_str(), "r")) {
        if (std::fgets(name.data(), name.size(), file) != nullptr)
          found[std::stoi(id)] = std::string(name.data()).substr(0, std::string(name.data()).find('\n'));
        std::fclose(file);
      }
    }
    return found;
  }

  static bool stays(const std::string& target) {
    return target.rfind("socket:", 0) == 0 || target.rfind("/dev/", 0) == 0;
  }

  static bool stays_running(const std::string& name) { return name.rfind("pt_", 0) == 0 || name == "hortator-peers"; }

  std::map<int, std::string> descriptors_;
  std::map<int, std::string> threads_;
};

}  // namespace hortator::test
