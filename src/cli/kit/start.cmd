@rem Starts the workshop from this folder, which may be read-only; behind it stands what perflings takes.
@setlocal
@set "course="
@set "first=%~1"
@if not defined first set course=--course "%~dp0course"
@if "%first:~0,1%"=="-" set course=--course "%~dp0course"
@for %%c in ({COMMANDS}) do @if "%first%"=="%%c" set course=--course "%~dp0course"
@rem The course of this folder, unless another is named.
@for %%a in (%*) do @if "%%~a"=="--course" set course=
@"%~dp0perflings.exe" %* %course%
