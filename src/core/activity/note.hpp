#pragma once

#include <string>

namespace hortator::activity {

/// During its lifetime the watchdogs of ranks that wait for this one can report `text`: what it would throw once the
/// others come to where it waits. For faults only: it takes a lock. One at a time.
class Note {
 public:
  explicit Note(std::string text);
  ~Note();
  Note(const Note&) = delete;
  Note& operator=(const Note&) = delete;
};

/// That of this process; empty if there is none.
std::string note();

}  // namespace hortator::activity
