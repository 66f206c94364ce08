/* Including it is the test: C11 and C++20. */
#include "cairn/abi_layout_1_0.h"
