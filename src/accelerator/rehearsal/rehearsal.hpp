#pragma once

namespace hortator::accelerator {

class Training;

/// Call it when an optimizer is about to make an update. In a rehearsal, and where HORTATOR_MEMORY_REPORT asks for it,
/// the second one writes what one update and the memory until then have been; a rehearsal then ends the program, on
/// this rank. A run that counts its memory ends on all ranks after the updates of HORTATOR_MEASURE_UPDATES, if that is
/// set. Returns at once in ordinary runs.
void note_update_in_rehearsal(Training& training);

/// Call it before files of the user's are written. A rehearsal has nothing to write there: it ends the program. Returns
/// at once in ordinary runs.
void end_rehearsal_before_writing();

}  // namespace hortator::accelerator
