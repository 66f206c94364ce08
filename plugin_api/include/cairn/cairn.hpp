// The whole C++ SDK. Optional: a plugin may use abi.h alone. Header only, needs nothing but the standard library.
#pragma once

#include "cairn/plugin.hpp"
