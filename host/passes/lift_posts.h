#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Every top-level Communicate stands right after the last instruction that it depends on, with the
// Allocate of its output, in the order the posts had. Before streams are given out, so that the
// event it will wait for is recorded as early as its input is ready. Programs with events, groups
// or posts in bodies are left alone: their author has ordered them.
// A send also passes waits for other posts, so that the stages of a pipeline overlap.
Program liftPosts(Program program);

}  // namespace heddle::host
