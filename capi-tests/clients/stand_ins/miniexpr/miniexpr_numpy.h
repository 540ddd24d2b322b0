#pragma once
#include "miniexpr.h"

me_dtype me_dtype_from_numpy(int number);
